// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// One stack: the walk along the current thread's frames (python/frame_walk.h).
#pragma once

#include "code.bpf.h"
#include "native.bpf.h"
#include "state.bpf.h"

struct at_work {
  struct scratch* s;
  const struct kernel_process* p;
};

// The place of the n-th frame: the first half of the places is for the leaf, the other half is a ring.
static __always_inline __u32 place_of(__u32 n) {
  const __u32 half = KERNEL_MAX_FRAMES / 2;
  if (n >= half) n = half + (n & (half - 1));
  return n & (KERNEL_MAX_FRAMES - 1);
}

// Steps between two readings of the clock.
#define STEPS_TIMED 512

static long step(__u32 index, struct at_work* work) {
  struct scratch* s = work->s;
  const struct kernel_process* p = work->p;
  if (!s || !p) return 1;
  struct walk* w = &s->walk;
  __u64 at = w->at;
  __u32 n = w->count;
  if (!at) return 1;
  w->stopped = 1;
  if (w->steps >= KERNEL_MOST_STEPS - 1 ||
      (w->steps % STEPS_TIMED == STEPS_TIMED - 1 && bpf_ktime_get_ns() > w->until)) {
    w->end = KERNEL_END_FULL;
    return 1;
  }
  w->end = KERNEL_END_BROKEN;
  if (!is_plausible(at) || (at & 7) || at == w->checkpoint) return 1;
  if (w->steps == w->next_checkpoint) {
    w->checkpoint = at;
    w->next_checkpoint *= 2;
  }
  w->steps++;
  if (bpf_probe_read_user(s->header, at_most(p->python.frame.bytes, KERNEL_HEADER_BYTES), (void*)at)) {
    w->end = KERNEL_END_UNREADABLE;
    s->sample.stack.hash = at;
    return 1;
  }
  __u64 code = *(__u64*)(s->header + (p->python.frame.code & 0x78)) & ~(__u64)p->python.frame.code_mask;
  __u64 previous = *(__u64*)(s->header + (p->python.frame.previous & 0x78));
  __u64 instr = p->python.frame.instr_bytes == 8 ? *(__u64*)(s->header + (p->python.frame.instr & 0x78))
                                                 : *(__u32*)(s->header + (p->python.frame.instr & 0x7c));
  __u32 entry = 0;
  if (p->python.frame.base == KERNEL_BASE_ENTRY_OWNER) {
    entry = s->header[p->python.frame.owner & 0x7f] >= p->python.frame.owner_entry;
    if (entry) code = 0;
    w->base = entry;
    if (!entry) w->only_entries = 0;
  } else if (p->python.frame.base == KERNEL_BASE_IS_ENTRY) {
    entry = s->header[p->python.frame.is_entry & 0x7f] != 0;
    w->base = entry;
    w->only_entries = 0;
  }
  w->stopped = 0;
  // The first entry frame of a true chain has the outer evaluation's frame before it (python::outer_frame).
  if (entry && w->outer && !w->checked) {
    if (previous != w->outer) return 1;
    w->checked = 1;
  }
  if (code) {
    __u32 place = place_of(n);
    s->codes[place] = code;
    s->instrs[place] = instr;
    s->tlbc[place] =
        p->python.frame.tlbc == KERNEL_ABSENT ? 0 : *(__u32*)(s->header + (p->python.frame.tlbc & 0x7c));
    w->count = n + 1;
  }
  if (with_native) note_start(s, p, at, code, entry);
  w->at = previous;
  return 0;
}

static __always_inline void start(struct walk* w, const struct kernel_process* p, __u64 at) {
  w->at = at;
  w->checkpoint = 0;
  w->steps = w->count = w->stopped = 0;
  w->next_checkpoint = 1;
  w->inner = w->starts = 0;
  w->until = bpf_ktime_get_ns() + p->longest_walk;
  w->only_entries = 1;
  w->base = p->python.frame.base == KERNEL_BASE_NONE;
}

// The offset of the instruction in the code object; in free-threaded builds, that in the thread's own copy
// (python::bytecode_of_frame).
int instruction_of(const struct kernel_process* p, __u64 code, __u64 instr, __u32 tlbc) {
  if (!p) return 0;
  if (p->python.frame.instr_bytes != 8) return (int)instr;
  if (!tlbc) return (int)(instr - code);
  __u64 copies = 0, size = 0, copy = 0;
  if (bpf_probe_read_user(&copies, 8, (void*)(code + p->python.code.tlbc))) return 0;
  copies += p->python.code.tlbc_entries;
  if (bpf_probe_read_user(&size, 8, (void*)(copies - 8)) || tlbc >= size) return 0;
  if (bpf_probe_read_user(&copy, 8, (void*)(copies + 8ull * tlbc))) return 0;
  return (int)(instr - copy + p->python.code.adaptive);
}

static long resolve(__u32 index, struct at_work* work) {
  struct scratch* s = work->s;
  const struct kernel_process* p = work->p;
  if (!s || !p) return 1;
  struct walk* w = &s->walk;
  if (index >= w->kept || index >= KERNEL_MAX_FRAMES) return 1;
  __u32 place = place_of(index < KERNEL_MAX_FRAMES / 2 ? index : index + s->sample.stack.left_out);
  __u64 code = s->codes[place];
  int serial = prove(s, p, code, w->epoch);
  if (serial == -1) {
    w->end = KERNEL_END_UNREADABLE;
    s->sample.stack.hash = code;
    return 1;
  }
  if (serial == 0) w->not_read = 1;
  __u64 frame = (__u64)(__u32)serial << 32 | (__u32)instruction_of(p, code, s->instrs[place], s->tlbc[place]);
  s->frames[index] = frame;
  w->hash = mix(w->hash, frame);
  return 0;
}

// The word that changes when a code object is created or freed; 0: there is none.
static __always_inline __u64 epoch_of(struct scratch* s, const struct kernel_process* p, __u64 interpreter) {
  __u64 word = 0;
  switch (p->python.epoch) {
    case KERNEL_EPOCH_GLOBAL:
      if (bpf_probe_read_user(&word, 4, (void*)p->python.global_epoch)) return 0;
      break;
    case KERNEL_EPOCH_VERSION:
      if (bpf_probe_read_user(&word, 4, (void*)(interpreter + p->python.interp.epoch))) return 0;
      break;
    case KERNEL_EPOCH_GENERATION:
      if (bpf_probe_read_user(&word, 8, (void*)(interpreter + p->python.interp.epoch))) return 0;
      break;
    default:
      return 0;
  }
  if (!word) return 0;
  s->walk.below = p->python.epoch == KERNEL_EPOCH_GENERATION ? ~0ull : word;
  // An interpreter may end, and another begin at its address: proved again each second.
  __u64 hash = mix(mix(mix(mix(1, word), interpreter), p->id), bpf_ktime_get_ns() >> 30);
  return hash | 1;
}

// Of a chain that was walked to its end.
static __always_inline __u32 end_of(const struct walk* w) {
  if (!w->count) return w->only_entries ? KERNEL_END_EMPTY : KERNEL_END_BROKEN;
  return w->base ? KERNEL_END_BASE : KERNEL_END_DETACHED;
}

// For the thread in s->walk, into s->sample.stack and s->frames.
int walk_named(struct scratch* s, const struct kernel_process* p) {
  if (!s || !p) return 0;
  struct kernel_stack* stack = &s->sample.stack;
  __builtin_memset(stack, 0, sizeof *stack);
  struct at_work work = {s, p};
  struct walk* w = &s->walk;
  w->outer = w->hash = 0;
  w->checked = w->not_read = 0;
  w->steps = w->kept = 0;
  find_state(s, p);
  __u64 state = w->state, top = 0;
  if (!state) {
    stack->end = KERNEL_END_NO_STATE;
    return 0;
  }
  stack->end = KERNEL_END_UNREADABLE;
  if (bpf_probe_read_user(&stack->interpreter, 8, (void*)(state + p->python.thread.interp)) ||
      bpf_probe_read_user(&stack->python_id, 8, (void*)(state + p->python.thread.id)) ||
      bpf_probe_read_user(&top, 8, (void*)(state + p->python.thread.frame)))
    return 0;
  stack->state = state;
  if (p->python.anchor == KERNEL_ANCHOR_CFRAME && top) {
    __u64 cframe = top, previous = 0;
    if (bpf_probe_read_user(&top, 8, (void*)(cframe + p->python.cframe.current))) return 0;
    if (cframe - state >= p->python.thread.size &&
        !bpf_probe_read_user(&previous, 8, (void*)(cframe + p->python.cframe.previous)) && previous)
      bpf_probe_read_user(&w->outer, 8, (void*)(previous + p->python.cframe.current));
  }
  start(w, p, top);
  bpf_loop(KERNEL_MOST_STEPS, step, &work, 0);
  // A chain that is too long to walk may still be true.
  if (w->outer && !w->checked && !(w->stopped && w->end == KERNEL_END_FULL)) {
    __u64 outer = w->outer;
    w->outer = 0;
    start(w, p, outer);
    bpf_loop(KERNEL_MOST_STEPS, step, &work, 0);
  }
  if (!w->stopped) w->end = end_of(w);
  stack->end = (__u16)w->end;
  if (w->end == KERNEL_END_BROKEN || w->end == KERNEL_END_UNREADABLE) return 0;
  w->epoch = epoch_of(s, p, stack->interpreter);
  // While the thread does not run, the code objects of its frames stay: each is proved once in a walk,
  // however often it occurs.
  if (!w->epoch) {
    w->epoch = mix(mix(2, bpf_ktime_get_ns()), state) | 1;
    w->below = ~0ull;
  }
  w->kept = at_most(w->count, w->end == KERNEL_END_FULL ? KERNEL_MAX_FRAMES / 2 : KERNEL_MAX_FRAMES);
  if (w->end != KERNEL_END_FULL) stack->left_out = w->count - w->kept;
  w->hash = mix(1 + w->end, stack->left_out);
  bpf_loop(KERNEL_MAX_FRAMES, resolve, &work, 0);
  stack->end = (__u16)w->end;
  if (w->end == KERNEL_END_UNREADABLE) return 0;
  if (w->not_read) stack->flags |= KERNEL_NOT_READ;
  stack->count = w->kept;
  stack->hash = w->hash;
  return 1;
}

// For the current thread, or for one that is off its CPU and shares its memory.
static __always_inline int walk_python(struct scratch* s, const struct kernel_process* p,
                                       struct task_struct* task) {
  s->walk.thread = THREAD_POINTER(task) - p->python.thread_block;
  s->walk.tid = thread_id(task);
  return walk_named(s, p);
}
