// The stack of Python frames of one thread state, from a sample's copy of its memory: walked, with each code
// object proved to be the one that the consumer knows. Does not know whether the copy is of one moment, which
// its caller must prove. Called by the worker that holds the turn lock.
#pragma once

#include <cstdlib>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "phlox/base/clock.h"
#include "phlox/memory/remote_memory.h"
#include "phlox/python/frame_walk.h"
#include "phlox/python/interpreter.h"
#include "phlox/sampler/capture/code_cache.h"
#include "phlox/sampler/capture/native_capture.h"
#include "phlox/sampler/capture/snapshot.h"
#include "phlox/sampler/observe/records.h"
#include "phlox/sampler/observe/ring.h"

namespace phlox::sampler {

// A Python thread state (PyThreadState), and what is kept of its stack.
struct ThreadState {
  // None: the thread has none now. Threads of Rust or C++ make one for each call into Python, and stay the
  // same thread.
  RemoteAddress tstate;
  RemoteAddress interpreter;
  int64_t interpreter_id = 0;
  uint64_t python_id = 0;  // as the thread state has it
  // It is bound to no thread (Traits::first_state_unbound) and represents the thread that runs the
  // subinterpreter, whose C stack has its frames. An empty stack: not known, no frames may be there.
  bool unbound = false;
  RemoteAddress stack_start, stack_end;

  std::vector<std::pair<RemoteAddress, CodeCache::Entry*>> codes;  // root first, of the stack last read
  uint64_t codes_generation = 0;                                   // of their cache
};

class StackReader {
 public:
  struct Reading {
    bool whole = false;  // there is a stack, or validly none
    profile::Quality quality = profile::Quality::ok;
    Rejected rejected = Rejected::no;
    // The memory of the thread state belongs to another by now: validly no stack.
    bool state_gone = false;
    // The state is bound to no thread, and another one than the known thread runs it by now: the kernel's
    // facts about the known one prove nothing.
    bool runs_elsewhere = false;
    std::span<const python::RawFrame> frames;  // leaf first, until the next read()
  };

  // `native`: gets where evaluations begin, for the native half of the sample; nullptr: there is none.
  StackReader(const python::Interpreter& interpreter, memory::RemoteMemory& memory, Ring& ring,
              Snapshot& snapshot, NativeCopy* native);

  // `reader`: the thread, as the snapshot counts readers.
  Reading read(Snapshot::Reader reader, ThreadState& state);
  // The last stack that was read, root first.
  const std::vector<CodeLocation>& locations() const { return locations_; }
  // The time that reading a stack may take; a deeper one is cut at the root. Not called: no limit.
  void limit(Nanoseconds longest);
  // The thread ran while its stack was read: from now on, less of a deep one is read.
  void was_moved();
  CodeCache& codes() { return codes_; }
  const CodeCache& codes() const { return codes_; }

 private:
  bool is_on_its_stack(const ThreadState& state, const std::byte* thread) const;
  std::optional<RemoteAddress> unpublished_evaluation(RemoteAddress state, const std::byte* thread,
                                                      const python::WalkResult& walk);
  std::optional<python::WalkResult> walk(const ThreadState& state, const std::byte* thread, Reading& reading);
  bool locate(ThreadState& state, size_t count, bool root_missing, Reading& reading);
  bool append(ThreadState& state, size_t index, size_t count);
  void learn(size_t count, Nanoseconds took);
  void note_start(const python::RawFrame& frame, size_t raw);
  void find_anchors(RemoteAddress state, const std::byte* thread, size_t frames);

  const python::Interpreter& interpreter_;
  const python::Layout& layout_;
  Snapshot& snapshot_;
  NativeCopy* native_;
  CodeCache codes_;
  // From calloc: pages that no stack reaches are never touched; touching them would cost a dump most of its
  // time.
  struct Free {
    void operator()(void* memory) const { std::free(memory); }
  };
  std::unique_ptr<python::RawFrame[], Free> frames_;
  // How many of them a walk may fill; learnt if the time is limited.
  size_t most_frames_;
  std::optional<Nanoseconds> longest_;
  bool may_grow_ = true;
  size_t last_count_ = 0;
  std::vector<CodeLocation> locations_;
  std::vector<uint64_t> links_, anchors_;
};

}  // namespace phlox::sampler
