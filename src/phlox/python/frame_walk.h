// The walk along one thread's Python frames, over bytes that were copied before. Pure: asks a Memory for
// bytes by address, opens no process, allocates nothing. The same loop serves every version: rows and traits
// have the differences.
//
// Memory must offer   const std::byte* find(RemoteAddress address, size_t size)
// which returns the bytes, fetching them if they were not predicted, or nullptr if they cannot be read.
#pragma once

#include <cstdint>
#include <span>

#include "phlox/base/address.h"
#include "phlox/base/load.h"
#include "phlox/python/layout.h"

namespace phlox::python {

// One frame as it is in memory, leaf first. Entry frames (one C local per evaluation of the interpreter loop,
// from 3.12 on) are kept: code is none and entry is set; they are anchors for native frames, not Python
// frames.
struct RawFrame {
  RemoteAddress frame;
  RemoteAddress code;
  // prev_instr or instr_ptr as an address (3.11+), f_lasti as a number before; see Traits::instruction.
  uint64_t instruction = 0;
  bool entry = false;  // 3.12+: an entry frame; 3.11: a Python frame with is_entry
};

enum class WalkEnd : uint8_t {
  base,        // the chain reached its base: the stack is whole
  empty,       // the thread runs no Python
  detached,    // no previous, but not a base entry frame: a generator between two states
  full,        // more frames than fit: the outer ones were not read
  unreadable,  // bytes that could not be read
  broken,      // invalid: a loop, or an impossible pointer
};

struct WalkResult {
  size_t count = 0;
  WalkEnd end = WalkEnd::empty;
};

// The start of a thread state's chain; none: it runs no Python. `thread`: the bytes of the thread state. Sets
// `unreadable` if the start cannot be read.
template <class Memory>
RemoteAddress top_frame(const Layout& layout, const std::byte* thread, Memory& memory, bool& unreadable) {
  unreadable = false;
  switch (layout.traits.anchor) {
    case FrameAnchor::frame_object:
      return RemoteAddress(load<uint64_t>(thread + *layout.thread.frame));
    case FrameAnchor::current_frame:
      return RemoteAddress(load<uint64_t>(thread + *layout.thread.current_frame));
    case FrameAnchor::cframe: {
      const RemoteAddress cframe(load<uint64_t>(thread + *layout.thread.cframe));
      if (!cframe) return {};
      const std::byte* bytes =
          is_plausible(cframe) ? memory.find(cframe + *layout.cframe.current_frame, 8) : nullptr;
      if (bytes == nullptr) {
        unreadable = true;
        return {};
      }
      return RemoteAddress(load<uint64_t>(bytes));
    }
  }
  return {};
}

// 3.11 and 3.12: _PyEval_EvalFrameDefault publishes its CFrame (tstate->cframe) before it sets the CFrame's
// current_frame, so for a moment that holds the old contents of the C stack: garbage, nothing, or a frame of
// an evaluation that has ended (Python/ceval.c). Returns the current_frame of the CFrame before it, which is
// valid; none: there is none before. `state`: the address of the thread state's bytes.
template <class Memory>
RemoteAddress outer_frame(const Layout& layout, RemoteAddress state, const std::byte* thread,
                          Memory& memory) {
  if (layout.traits.anchor != FrameAnchor::cframe) return {};
  const RemoteAddress cframe(load<uint64_t>(thread + *layout.thread.cframe));
  // root_cframe, in the thread state itself: no evaluation.
  if (cframe.value - state.value < *layout.thread.size) return {};
  const std::byte* bytes = memory.find(cframe + *layout.cframe.previous, 8);
  const RemoteAddress previous(bytes != nullptr ? load<uint64_t>(bytes) : 0);
  if (!previous) return {};
  bytes = memory.find(previous + *layout.cframe.current_frame, 8);
  return RemoteAddress(bytes != nullptr ? load<uint64_t>(bytes) : 0);
}

// Whether each evaluation begins with a frame of its own that has no code (3.12+).
inline bool has_entry_frames(const Layout& layout) {
  return layout.frame.owner.present() && layout.traits.owner.entry != 255;
}

// The bytes of a frame that the walk needs, from its start.
inline size_t frame_header_size(const Layout& layout) {
  size_t end = 0;
  auto reach = [&end](Offset offset, size_t size) {
    if (offset.present() && *offset + size > end) end = *offset + size;
  };
  reach(layout.frame.executable, 8);
  reach(layout.frame.previous, 8);
  reach(layout.frame.instr, layout.traits.interpreter_frames ? 8 : 4);
  reach(layout.frame.owner, 1);
  reach(layout.frame.is_entry, 1);
  return end;
}

// What a chain is that has no frame left: some of its frames have code; all are entries; its last one is the
// base of an evaluation.
inline WalkEnd end_of_chain(bool runs_python, bool only_entries, bool base) {
  if (runs_python) return base ? WalkEnd::base : WalkEnd::detached;
  // From 3.15 on the chain of an idle thread still has its sentinel (tstate->base_frame). Without code and
  // without that mark it is no frame: 3.11 and 3.12 publish a CFrame before they fill it.
  return only_entries ? WalkEnd::empty : WalkEnd::broken;
}

template <class Memory>
WalkResult walk_frames(const Layout& layout, RemoteAddress top, Memory& memory, std::span<RawFrame> frames) {
  const auto& offsets = layout.frame;
  const size_t header = frame_header_size(layout);
  const bool objects = !layout.traits.interpreter_frames;
  const bool entry_frames = has_entry_frames(layout);
  const bool has_is_entry = offsets.is_entry.present();

  WalkResult result;
  RemoteAddress at = top;
  // Brent's algorithm: a checkpoint that moves at powers of two finds any cycle in linear time.
  RemoteAddress checkpoint;
  size_t next_checkpoint = 1;
  bool runs_python = false, only_entries = true;
  bool base = objects;  // frame objects have no mark of a base: the chain ends where f_back is none
  while (at) {
    if (result.count == frames.size()) {
      result.end = WalkEnd::full;
      return result;
    }
    if (!is_plausible(at) || (at.value & 7) != 0 || at == checkpoint) {
      result.end = WalkEnd::broken;
      return result;
    }
    if (result.count == next_checkpoint) {
      checkpoint = at;
      next_checkpoint *= 2;
    }
    const std::byte* bytes = memory.find(at, header);
    if (bytes == nullptr) {
      result.end = WalkEnd::unreadable;
      return result;
    }
    RawFrame& frame = frames[result.count++];
    frame.frame = at;
    uint64_t executable = load<uint64_t>(bytes + *offsets.executable);
    if (layout.traits.tagged_executable) executable &= ~uint64_t{3};
    frame.code = RemoteAddress(executable);
    frame.instruction = objects ? static_cast<uint64_t>(int64_t{load<int32_t>(bytes + *offsets.instr)})
                                : load<uint64_t>(bytes + *offsets.instr);
    frame.entry = false;
    if (entry_frames) {
      frame.entry = load<uint8_t>(bytes + *offsets.owner) >= layout.traits.owner.entry;
      if (frame.entry) frame.code = {};
      base = frame.entry;
    } else if (has_is_entry) {
      frame.entry = load<uint8_t>(bytes + *offsets.is_entry) != 0;
      // A generator's as well: its caller need not be Python (Python/ceval.c links it before it is current).
      base = frame.entry;
    }
    runs_python = runs_python || frame.code;
    only_entries = only_entries && entry_frames && frame.entry;
    at = RemoteAddress(load<uint64_t>(bytes + *offsets.previous));
  }
  result.end = end_of_chain(runs_python, only_entries, base);
  return result;
}

}  // namespace phlox::python
