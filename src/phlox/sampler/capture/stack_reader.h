// The stack of Python frames of one thread state, out of the copy of its memory that a look has made: walked,
// and each code object proved to be the one that the consumer knows. Says nothing of whether the copy is of
// one moment, which is its caller's to prove. Called by the worker that holds the turn lock.
#pragma once

#include <cstdlib>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "phlox/memory/remote_memory.h"
#include "phlox/python/frame_walk.h"
#include "phlox/python/interpreter.h"
#include "phlox/sampler/capture/code_cache.h"
#include "phlox/sampler/capture/native_capture.h"
#include "phlox/sampler/capture/records.h"
#include "phlox/sampler/capture/ring.h"
#include "phlox/sampler/capture/snapshot.h"

namespace phlox::sampler {

// A thread state of Python (PyThreadState), and what is remembered of its stack.
struct ThreadState {
  // None: the thread has none now. Threads of Rust or C++ make one for each call into Python, and are the
  // same thread all the while.
  RemoteAddress tstate;
  RemoteAddress interpreter;
  int64_t interpreter_id = 0;
  uint64_t python_id = 0;  // as the thread state has it
  // It is bound to no thread (Traits::first_state_unbound) and stands for whichever one runs the
  // subinterpreter, on whose C stack its frames hang. An empty stack: not known, nothing may hang on any.
  bool unbound = false;
  RemoteAddress stack_start, stack_end;

  std::vector<std::pair<RemoteAddress, CodeCache::Entry*>> codes;  // root first, of the stack last read
  uint64_t codes_generation = 0;                                   // of the cache that they lie in
};

class StackReader {
 public:
  struct Reading {
    bool whole = false;  // there is a stack, or rightly none
    profile::Quality quality = profile::Quality::ok;
    Rejected rejected = Rejected::no;
    // The memory of the thread state is no longer this one's: rightly no stack.
    bool state_gone = false;
    // The state is bound to no thread, and another than the known one runs it by now: what the kernel says of
    // that one proves nothing.
    bool runs_elsewhere = false;
    std::span<const python::RawFrame> frames;  // leaf first, until the next read()
  };

  // `native`: gets where evaluations begin, for the native half of the look; nullptr: there is none.
  StackReader(const python::Interpreter& interpreter, memory::RemoteMemory& memory, Ring& ring,
              Snapshot& snapshot, NativeCopy* native);

  // `reader`: the thread, as the snapshot counts readers.
  Reading read(Snapshot::Reader reader, ThreadState& state);
  // What was read last, root first.
  const std::vector<CodeLocation>& locations() const { return locations_; }
  CodeCache& codes() { return codes_; }
  const CodeCache& codes() const { return codes_; }

 private:
  bool is_on_its_stack(const ThreadState& state, const std::byte* thread) const;
  std::optional<RemoteAddress> unpublished_evaluation(RemoteAddress state, const std::byte* thread,
                                                      const python::WalkResult& walk);
  std::optional<python::WalkResult> walk(const ThreadState& state, const std::byte* thread, Reading& reading);
  bool locate(ThreadState& state, size_t count, bool root_missing, Reading& reading);
  bool append(ThreadState& state, size_t index, size_t count);
  void note_start(const python::RawFrame& frame, size_t raw);
  void find_anchors(RemoteAddress state, const std::byte* thread, size_t frames);

  const python::Interpreter& interpreter_;
  const python::Layout& layout_;
  Snapshot& snapshot_;
  NativeCopy* native_;
  CodeCache codes_;
  // From calloc: pages that no stack reaches are never touched, which would cost a dump most of its time.
  struct Free {
    void operator()(void* memory) const { std::free(memory); }
  };
  std::unique_ptr<python::RawFrame[], Free> frames_;
  std::vector<CodeLocation> locations_;
  std::vector<uint64_t> links_, anchors_;
};

}  // namespace phlox::sampler
