// Merges two stacks into one: Python frames are placed among the native frames that ran them, by address.
// Since 3.10 every evaluation of the interpreter loop keeps a record on the C stack (3.10, 3.11: the CFrame;
// 3.12+: the entry frame): an anchor, which is in the [sp, cfa) of exactly one native frame, the loop's.
// Before 3.10 there is none: one Python frame for each native frame of the loop, counted from the outermost;
// from the innermost if the outer ones are not of this chain (a greenlet runs on another's C stack) or were
// not reached. Pure; no names, no counts, no process. A frame that cannot be merged is kept and marked, never
// dropped.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "phlox/base/address.h"
#include "phlox/unwind/unwinder.h"

namespace phlox::sampler {

// Python frames that one evaluation of the interpreter loop runs: a part of the frame chain, `count` frames
// (without entry frames), starting with number `first`, innermost first.
struct PythonGroup {
  uint32_t first = 0;
  uint32_t count = 0;
  RemoteAddress anchor;  // none: this version has none, or it is not set yet
};

struct MergedFrame {
  bool python = false;
  uint32_t index = 0;  // into the Python frames or the native frames of the input
  friend bool operator==(const MergedFrame&, const MergedFrame&) = default;
};

// Whether the native frames reach the thread's start.
enum class NativeEnd : uint8_t { start, cut };

enum class MergeEnd : uint8_t {
  // Every group is in the native frame that ran it (an innermost loop frame may have no Python frames yet)
  whole,
  native_cut,   // the native stack ends before its outermost groups: these follow it, in order
  partial,      // some group has no place of its own: the order of the groups decides its place
  python_only,  // no native frames
  native_only,  // no Python frames
};

struct Merged {
  std::vector<MergedFrame> frames;  // innermost first
  MergeEnd end = MergeEnd::whole;
  uint32_t unplaced_groups = 0;
  // An innermost loop frame without Python frames: it has just been entered, or will return soon.
  bool prologue = false;
};

// `groups` innermost first. `is_loop`: one byte for each native frame, 1 for a pc inside the interpreter
// loop; may be empty (stripped files), then only anchors count. `out` is emptied first; its memory is reused.
void merge(std::span<const PythonGroup> groups, std::span<const unwind::NativeFrame> native,
           std::span<const uint8_t> is_loop, NativeEnd native_end, Merged& out);

// How many native frames, innermost first, are the running greenlet's own: up to the first of greenlet's
// library outside its Python frames, which runs it. Further out, the C stack has frames that others left or
// put there, which did not call it (greenlet 3.1, src/greenlet/TUserGreenlet.cpp: the part that is copied
// away and back ends at a mark in g_switch). 0: no greenlet's stack, or not known. `of_greenlet`: whether a
// native frame is of its library.
size_t frames_of_greenlet(std::span<const PythonGroup> groups, std::span<const unwind::NativeFrame> native,
                          const std::function<bool(const unwind::NativeFrame&)>& of_greenlet);

}  // namespace phlox::sampler
