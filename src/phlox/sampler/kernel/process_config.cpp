#include "phlox/sampler/kernel/process_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <span>
#include <vector>

#include "phlox/base/load.h"
#include "phlox/base/machine.h"
#include "phlox/python/frame_walk.h"
#include "phlox/python/unicode.h"

namespace phlox::sampler {
namespace {

using python::Layout;
using python::Offset;

uint32_t word_of(Offset offset) {
  return offset.present() ? *offset : KERNEL_ABSENT;
}

// The range of a code object that proves it, as in python::CodeIdentity.
void set_proof(const Layout& layout, kernel_python& where) {
  uint32_t from = *layout.code.firstlineno, to = from + 4;
  const auto cover = [&](Offset offset, uint32_t size) {
    if (!offset.present()) return;
    from = std::min(from, *offset);
    to = std::max(to, *offset + size);
  };
  for (const Offset part :
       {layout.code.name, layout.code.qualname, layout.code.filename, layout.code.linetable})
    cover(part, 8);
  where.code.proof_contents = layout.traits.code_proof == python::CodeProof::contents;
  if (!where.code.proof_contents) cover(layout.code.version, 4);
  // In the copied bytes, pointers are at multiples of 8.
  where.code.proof_from = from & ~uint32_t{7};
  where.code.proof_bytes = to - where.code.proof_from;
}

uint32_t struct_bytes(const Layout& layout) {
  const auto& code = layout.code;
  uint32_t end = 0;
  for (const Offset field :
       {code.name, code.qualname, code.filename, code.linetable, code.firstlineno, code.flags, code.version,
        code.code, layout.object.ob_type, layout.bytes.ob_size}) {
    if (field.present()) end = std::max(end, *field + 8);
  }
  return end;
}

void set_epoch(const python::Interpreter& interpreter, kernel_python& where) {
  const auto& fields = interpreter.layout.interpreter;
  where.epoch = KERNEL_EPOCH_NONE;
  where.interp.epoch = KERNEL_ABSENT;
  switch (interpreter.layout.traits.code_epoch) {
    case python::CodeEpoch::none:
      break;
    case python::CodeEpoch::global_version:
      if (!interpreter.next_func_version) break;
      where.epoch = KERNEL_EPOCH_GLOBAL;
      where.global_epoch = interpreter.next_func_version.value;
      break;
    case python::CodeEpoch::interpreter_version:
      where.interp.epoch = word_of(fields.func_state_next_version);
      if (where.interp.epoch != KERNEL_ABSENT) where.epoch = KERNEL_EPOCH_VERSION;
      break;
    case python::CodeEpoch::generation:
      where.interp.epoch = word_of(fields.code_object_generation);
      if (where.interp.epoch != KERNEL_ABSENT) where.epoch = KERNEL_EPOCH_GENERATION;
      break;
  }
}

void set_gil(const python::Interpreter& interpreter, kernel_python& where) {
  const Layout& layout = interpreter.layout;
  where.gil.at = 0;
  where.interp.gil = KERNEL_ABSENT;
  where.interp.collecting = word_of(layout.interpreter.gc_collecting);
  const auto& gil = layout.gil_state;
  if (layout.traits.free_threaded || !gil.last_holder.present() || !gil.locked.present()) return;
  where.gil.at = interpreter.gil.value;
  if (layout.traits.gil == python::GilOwner::interpreter)
    where.interp.gil = word_of(layout.interpreter.ceval_gil);
  where.gil.holder = *gil.last_holder;
  where.gil.locked = *gil.locked;
  where.gil.size = gil.size.present() ? *gil.size : 0;
}

void set_thread(const python::Interpreter& interpreter, kernel_python& where) {
  const Layout& layout = interpreter.layout;
  const bool cframe = layout.traits.anchor == python::FrameAnchor::cframe;
  where.thread.interp = *layout.thread.interp;
  where.thread.id = *layout.thread.thread_id;
  where.thread.size = *layout.thread.size;
  where.thread.prev = *layout.thread.prev;
  where.thread.next = *layout.thread.next;
  where.interpreters = interpreter.interpreters_head.value;
  where.interp.next = word_of(layout.interpreter.next);
  where.interp.threads = *layout.interpreter.threads_head;
  where.cframe.current = cframe ? *layout.cframe.current_frame : 0;
  where.cframe.previous = cframe ? *layout.cframe.previous : 0;
  where.thread.cframe = python::has_entry_frames(layout) || !layout.cframe.previous.present()
                            ? KERNEL_ABSENT
                            : word_of(layout.thread.cframe);
}

void set_frame(const Layout& layout, kernel_python& where) {
  where.frame.bytes = static_cast<uint32_t>(python::frame_header_size(layout));
  where.frame.code = *layout.frame.executable;
  where.frame.previous = *layout.frame.previous;
  where.frame.instr = *layout.frame.instr;
  where.frame.instr_bytes = layout.traits.anchor == python::FrameAnchor::frame_object ? 4 : 8;
  where.frame.owner = python::has_entry_frames(layout) ? *layout.frame.owner : 0;
  where.frame.is_entry = layout.frame.is_entry.present() ? *layout.frame.is_entry : 0;
  where.frame.owner_entry = layout.traits.owner.entry;
  where.frame.code_mask = layout.traits.tagged_executable ? 3 : 0;
  where.frame.tlbc = word_of(layout.frame.tlbc_index);
  where.code.tlbc = word_of(layout.code.tlbc);
  where.code.tlbc_entries = word_of(layout.tlbc_array.entries);
  if (where.frame.tlbc != KERNEL_ABSENT)
    where.frame.bytes = std::max(where.frame.bytes, where.frame.tlbc + 4);
}

void set_code(const Layout& layout, kernel_python& where) {
  where.code.adaptive = word_of(layout.code.code_adaptive);
  where.code.bytes = struct_bytes(layout);
  where.code.version = word_of(layout.code.version);
  where.code.part[0] = word_of(layout.code.name);
  where.code.part[1] = word_of(layout.code.qualname);
  where.code.part[2] = word_of(layout.code.filename);
  where.code.part[3] = word_of(layout.code.linetable);
  where.code.part[4] = layout.code.code_adaptive.present() ? KERNEL_ABSENT : word_of(layout.code.code);
}

// Strings, and the bytes object of a line table.
void set_text(const Layout& layout, kernel_python& where) {
  where.text.head = static_cast<uint32_t>(python::string_head_size(layout));
  where.text.length = python::string_length_offset(layout);
  where.text.state = *layout.unicode.state;
  where.text.shift = layout.traits.unicode_kind_shift;
  where.text.ascii = *layout.unicode.asciiobject_size;
  where.text.compact = *layout.unicode.compactobject_size;
  where.bytes.size = *layout.bytes.ob_size;
  where.bytes.data = *layout.bytes.ob_sval;
}

bool fits(const Layout& layout, const kernel_python& where) {
  const bool tlbc =
      layout.frame.tlbc_index.present() && layout.code.tlbc.present() && layout.tlbc_array.entries.present();
  return where.frame.bytes <= KERNEL_HEADER_BYTES && where.code.bytes <= KERNEL_STRUCT_BYTES &&
         where.code.proof_bytes <= KERNEL_PROOF_WORDS * 8 && where.text.head <= KERNEL_HEADER_BYTES &&
         (tlbc || !layout.traits.free_threaded || !layout.frame.tlbc_index.present());
}

// Thread states, and the threads that they name.
struct State {
  RemoteAddress address, thread;
};

std::vector<State> states_of(const python::Interpreter& interpreter, memory::RemoteMemory& memory) {
  constexpr int kMostInterpreters = 16;
  constexpr size_t kMostStates = 64;
  const Layout& layout = interpreter.layout;
  std::vector<State> states;
  RemoteAddress at;
  memory.read_value(interpreter.interpreters_head, at.value);
  for (int i = 0; is_plausible(at) && i < kMostInterpreters; ++i) {
    RemoteAddress state;
    memory.read_value(at + *layout.interpreter.threads_head, state.value);
    while (is_plausible(state) && states.size() < kMostStates) {
      State one{state, {}};
      if (!memory.read_value(state + *layout.thread.thread_id, one.thread.value)) break;
      if (is_plausible(one.thread)) states.push_back(one);
      if (!memory.read_value(state + *layout.thread.next, state.value)) break;
    }
    if (!layout.interpreter.next.present() || !memory.read_value(at + *layout.interpreter.next, at.value)) {
      break;
    }
  }
  return states;
}

// glibc: struct pthread, specific_1stblock (nptl/descr.h), each a sequence number and a value. Before it lies
// the control block of x86-64, or aarch64's padding of 24 words in its place.
constexpr uint32_t kFirstBlock = kOnAarch64 ? 0x110 : 0x310, kKeySize = 16, kKeysInBlock = 32;
// musl: struct pthread has the pointer `tsd` somewhere in its first words
// (src/internal/pthread_impl.h).
constexpr uint32_t kMuslBlock = 0x100;
constexpr uint32_t kMuslKeys = 128;

uint64_t word_at(memory::RemoteMemory& memory, RemoteAddress at) {
  uint64_t word = 0;
  return is_plausible(at) && memory.read_value(at, word) ? word : 0;
}

bool try_glibc(memory::RemoteMemory& memory, const State& state, uint32_t key, kernel_python& where) {
  const uint32_t offset = kFirstBlock + key * kKeySize + 8;
  if (key >= kKeysInBlock || word_at(memory, state.thread + offset) != state.address.value) return false;
  where.state.offset = offset;
  where.state.how = KERNEL_STATE_WORD;
  where.state.index = 0;
  return true;
}

bool try_musl(memory::RemoteMemory& memory, const State& state, uint32_t key, kernel_python& where) {
  // pthread_self() is the address of the block, whose first word is that address.
  if (key >= kMuslKeys || word_at(memory, state.thread) != state.thread.value) return false;
  for (uint32_t offset = 8; offset < kMuslBlock; offset += 8) {
    const RemoteAddress keys(word_at(memory, state.thread + offset));
    if (word_at(memory, keys + key * 8) != state.address.value) continue;
    where.state.offset = offset;
    where.state.how = KERNEL_STATE_INDIRECT;
    where.state.index = key * 8;
    return true;
  }
  return false;
}

}  // namespace

Result<kernel_process> kernel_process_of(const python::Interpreter& interpreter) {
  const Layout& layout = interpreter.layout;
  const auto unsupported = [&](const char* why) {
    return fail(ErrorKind::unsupported_python,
                fmt::format("cannot sample CPython {} ({}) inside the kernel: {}", interpreter.version,
                            interpreter.build, why),
                kOtherModes);
  };
  if (layout.traits.python2 || layout.major < 3 || layout.minor < 8)
    return unsupported("only 3.8 and newer are walked there");
  if (!interpreter.interpreters_head) return unsupported("where its interpreters are listed is not known");
  kernel_process where{};
  const bool objects = layout.traits.anchor == python::FrameAnchor::frame_object;
  const bool cframe = layout.traits.anchor == python::FrameAnchor::cframe;
  where.python.anchor = cframe ? KERNEL_ANCHOR_CFRAME : KERNEL_ANCHOR_FRAME;
  const Offset anchor = objects  ? layout.thread.frame
                        : cframe ? layout.thread.cframe
                                 : layout.thread.current_frame;
  if (!anchor.present()) return unsupported("its layout is not whole");
  where.python.thread.frame = *anchor;
  set_thread(interpreter, where.python);
  where.python.frame.base = KERNEL_BASE_NONE;
  if (python::has_entry_frames(layout)) {
    where.python.frame.base = KERNEL_BASE_ENTRY_OWNER;
  } else if (layout.frame.is_entry.present()) {
    where.python.frame.base = KERNEL_BASE_IS_ENTRY;
  } else if (!objects) {
    return unsupported("its frames do not say where their chain ends");
  }
  set_frame(layout, where.python);
  set_code(layout, where.python);
  set_text(layout, where.python);
  set_proof(layout, where.python);
  set_epoch(interpreter, where.python);
  set_gil(interpreter, where.python);
  if (!fits(layout, where.python)) return unsupported("its structs are larger than what is walked there");
  return where;
}

bool find_thread_state_word(const python::Interpreter& interpreter, memory::RemoteMemory& memory,
                            kernel_process& where) {
  if (!interpreter.runtime || !interpreter.layout.runtime.autoTSSkey.present()) return false;
  // Py_tss_t: whether it is initialised, and the key.
  std::array<int32_t, 2> key{};
  if (!memory.read_value(interpreter.runtime + *interpreter.layout.runtime.autoTSSkey, key)) return false;
  if (key[0] == 0 || key[1] < 0) return false;
  const auto number = static_cast<uint32_t>(key[1]);
  for (const State& state : states_of(interpreter, memory)) {
    if (try_glibc(memory, state, number, where.python) || try_musl(memory, state, number, where.python))
      return true;
  }
  return false;
}

bool find_listed_threads(const python::Interpreter& interpreter, memory::RemoteMemory& memory,
                         kernel_process& where) {
  if (states_of(interpreter, memory).empty()) return false;
  where.python.state.how = KERNEL_STATE_LISTED;
  return true;
}

}  // namespace phlox::sampler
