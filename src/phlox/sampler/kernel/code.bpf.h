// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Code objects: proved to be known, or sent as they are in memory (python/code_object.h).
#pragma once

#include "maps.bpf.h"

// Where a string's characters are, and their size in bytes; the head is in s->text. 0: no compact string.
static __always_inline __u64 text_content(struct scratch* s, const struct kernel_process* p, __u64 address,
                                          __u64* bytes) {
  __u32 state = *(__u32*)(s->text + (p->python.text.state & 0x7c)) >> (p->python.text.shift & 15);
  __u64 length = *(__u64*)(s->text + (p->python.text.length & 0x78));
  __u32 kind = state & 7, compact = state >> 3 & 1, ascii = state >> 4 & 1;
  *bytes = length * kind;
  if (!compact || length > 1ull << 32) return 0;
  return address + (ascii ? p->python.text.ascii : p->python.text.compact);
}

// Reads into s->text; at the end of a mapping, only the head that every string has.
static __always_inline int read_head(struct scratch* s, const struct kernel_process* p, __u64 address) {
  for (int i = 0; i < KERNEL_HEADER_BYTES / 8; i++) ((__u64*)s->text)[i] = 0;
  return address &&
         (!bpf_probe_read_user(s->text, at_most(p->python.text.head, KERNEL_HEADER_BYTES), (void*)address) ||
          !bpf_probe_read_user(s->text, at_most(p->python.text.ascii, KERNEL_HEADER_BYTES), (void*)address));
}

// Adds the first and last of these bytes to the hash.
static __always_inline __u64 mix_ends(struct scratch* s, __u64 hash, __u64 at, __u64 bytes) {
  __u32 some = at_most(bytes, CONTENT);
  hash = mix(hash, bytes);
  for (int i = 0; i < CONTENT / 8; i++) s->content[i] = 0;
  if (bpf_probe_read_user(s->content, some, (void*)at)) return hash;
  for (int i = 0; i < CONTENT / 8; i++) hash = mix(hash, s->content[i]);
  if (bytes <= CONTENT) return hash;
  if (bpf_probe_read_user(s->content, CONTENT, (void*)(at + bytes - CONTENT))) return hash;
  for (int i = 0; i < CONTENT / 8; i++) hash = mix(hash, s->content[i]);
  return hash;
}

// Before 3.12 nothing in a code object distinguishes it from an earlier one at the same address: names and
// tables are allocated where the last ones were freed. A string's hash covers its middle; nothing covers the
// middle of a line table of more than 256 bytes.
int mix_text(struct scratch* s, const struct kernel_process* p, __u64 address, __u64* hash) {
  if (!s || !p || !hash) return 0;
  __u64 h = mix(*hash, address), bytes = 0;
  if (read_head(s, p, address)) {
    __u32 from = p->python.text.length & 0x78;
    for (int i = 0; i < 3; i++) h = mix(h, *(__u64*)(s->text + ((from + 8 * i) & 0x78)));
    __u64 at = text_content(s, p, address, &bytes);
    if (at) h = mix_ends(s, h, at, bytes);
  }
  *hash = h;
  return 0;
}

int mix_lines(struct scratch* s, const struct kernel_process* p, __u64 address, __u64* hash) {
  if (!s || !p || !hash) return 0;
  __u64 h = mix(*hash, address), bytes = 0;
  if (address && !bpf_probe_read_user(&bytes, 8, (void*)(address + p->python.bytes.size)))
    h = mix_ends(s, h, address + p->python.bytes.data, bytes);
  *hash = h;
  return 0;
}

// A pointer of the code object whose proof was read; all of them are in that range.
static __always_inline __u64 proof_word(struct scratch* s, const struct kernel_process* p, __u32 part) {
  __u32 offset = p->python.code.part[part];
  if (offset == KERNEL_ABSENT) return 0;
  __u64 value = 0;
  offset -= p->python.code.proof_from;
  if (offset > sizeof s->proof - 8) return 0;
  __builtin_memcpy(&value, (__u8*)s->proof + offset, 8);
  return value;
}

// Copies one of its strings, head and characters, to s->code.bytes + `from`.
static __always_inline void read_text(struct scratch* s, const struct kernel_process* p, __u32 part,
                                      __u32 from, __u32 room) {
  __u64 address = proof_word(s, p, part), bytes = 0;
  if (!read_head(s, p, address)) return;
  __u64 at = text_content(s, p, address, &bytes);
  __u32 size = at_most(at ? at - address + bytes : p->python.text.ascii, room);
  if (bpf_probe_read_user(s->code.bytes + from, size, (void*)address)) return;
  s->code.head.part[part].address = address;
  s->code.head.part[part].at = from;
  s->code.head.part[part].size = size;
}

// Sends the code object as it is in memory now. Returns its serial; 0: there was no room.
int new_code(struct scratch* s, const struct kernel_process* p, __u64 code, __u64 contents) {
  if (!s || !p) return 0;
  struct kernel_code* record = &s->code.head;
  __builtin_memset(record, 0, sizeof *record);
  if (bpf_probe_read_user(s->code.bytes, at_most(p->python.code.bytes, KERNEL_STRUCT_BYTES), (void*)code))
    return 0;
  record->head.type = KERNEL_CODE;
  record->head.id = p->id;
  record->address = code;
  record->size = BYTES_LINES;
  read_text(s, p, 0, BYTES_NAME, KERNEL_NAME_BYTES);
  read_text(s, p, 1, BYTES_QUALNAME, KERNEL_NAME_BYTES);
  read_text(s, p, 2, BYTES_FILE, KERNEL_FILE_BYTES);
  __u32 apart = p->python.code.part[4];
  if (apart <= KERNEL_STRUCT_BYTES - 8) {
    __u64 address = *(__u64*)(s->code.bytes + (apart & 0xf8));
    if (!bpf_probe_read_user(s->code.bytes + BYTES_HEAD, KERNEL_HEAD_BYTES / 2, (void*)address)) {
      record->part[4].address = address;
      record->part[4].at = BYTES_HEAD;
      record->part[4].size = KERNEL_HEAD_BYTES / 2;
    }
  }
  __u64 lines = proof_word(s, p, 3), size = 0;
  if (lines && !bpf_probe_read_user(&size, 8, (void*)(lines + p->python.bytes.size))) {
    __u32 some = at_most(size + p->python.bytes.data, KERNEL_LINES_BYTES);
    if (!bpf_probe_read_user(s->code.bytes + BYTES_LINES, some, (void*)lines)) {
      record->part[3].address = lines;
      record->part[3].at = BYTES_LINES;
      record->part[3].size = some;
      record->size = BYTES_LINES + ((some + 7) & ~7u);
    }
  }
  __u32 serial = __sync_fetch_and_add(&last_serial, 1) + 1;
  record->serial = serial;
  if (!send(&s->code, sizeof *record + at_most(record->size, BYTES_LINES + KERNEL_LINES_BYTES))) return 0;
  // A page of its names is not in memory: it is sent again next time.
  if (!record->part[0].address || !record->part[2].address) return 0;
  struct key key = {code, p->id};
  struct known_code known;
  for (int i = 0; i < KERNEL_PROOF_WORDS; i++) known.word[i] = s->proof[i];
  known.contents = contents;
  known.serial = serial;
  bpf_map_update_elem(&codes, &key, &known, BPF_ANY);
  return (int)serial;
}

// The serial of the code object at this address: proved to be the one that was sent, or sent. 0: no room;
// -1: it cannot be read.
int prove(struct scratch* s, const struct kernel_process* p, __u64 code, __u64 epoch) {
  if (!s || !p) return -1;
  // Workers that were forked have the same code objects at the same addresses.
  __u32 slot = (__u32)(mix(p->id, code) >> 52) & (SEEN - 1);
  if (epoch && s->seen[slot].code == code && s->seen[slot].epoch == epoch) return (int)s->seen[slot].serial;
  if (!is_plausible(code)) return -1;
  for (int i = 0; i < KERNEL_PROOF_WORDS; i++) s->proof[i] = 0;
  if (bpf_probe_read_user(s->proof, at_most(p->python.code.proof_bytes, sizeof s->proof),
                          (void*)(code + p->python.code.proof_from)))
    return -1;
  __u64 contents = 0;
  if (p->python.code.proof_contents) {
    mix_text(s, p, proof_word(s, p, 0), &contents);
    if (p->python.code.part[1] != KERNEL_ABSENT && proof_word(s, p, 1) != proof_word(s, p, 0))
      mix_text(s, p, proof_word(s, p, 1), &contents);
    mix_text(s, p, proof_word(s, p, 2), &contents);
    mix_lines(s, p, proof_word(s, p, 3), &contents);
  }
  struct key key = {code, p->id};
  struct known_code* known = bpf_map_lookup_elem(&codes, &key);
  int same = known && known->contents == contents;
  if (same) {
    for (int i = 0; i < KERNEL_PROOF_WORDS; i++) same &= known->word[i] == s->proof[i];
  }
  int serial = same ? (int)known->serial : new_code(s, p, code, contents);
  if (serial == 0 || !epoch) return serial;
  // Otherwise the word is not what the layout says, and proves nothing (python::epoch_follows).
  __u32 version = p->python.code.version - p->python.code.proof_from;
  if (version <= sizeof s->proof - 4 && *(__u32*)((__u8*)s->proof + (version & 0x7c)) >= s->walk.below)
    return serial;
  s->seen[slot].code = code;
  s->seen[slot].epoch = epoch;
  s->seen[slot].serial = serial;
  return serial;
}
