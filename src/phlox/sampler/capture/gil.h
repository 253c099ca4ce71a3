// The holder of a GIL and the threads that wait for it, for one interpreter: from its words in the target's
// memory, in a copy or now. If a version has no GIL that can be found, the current thread state names the
// holder. Reads nothing else, and keeps nothing between two calls. Called by the worker that holds the turn
// lock.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "phlox/memory/remote_memory.h"
#include "phlox/process/thread_probe.h"
#include "phlox/profile/model.h"
#include "phlox/python/interpreter.h"
#include "phlox/sampler/capture/snapshot.h"

namespace phlox::sampler {

class Gil {
 public:
  // The words that name the holder.
  struct Words {
    static constexpr size_t kRanges = 2;
    int32_t locked = 1;
    uint64_t last = 0;
    RemoteAddress holder() const { return locked > 0 ? RemoteAddress(last) : RemoteAddress{}; }
  };

  Gil() = default;
  // `interpreter`: PyInterpreterState; `gil`: struct of last_holder and locked, if it is known.
  Gil(const python::Interpreter& python, RemoteAddress interpreter, RemoteAddress gil)
      : python_(&python), interpreter_(interpreter), gil_(gil) {}

  // The ranges of the words, each to be read into `words`; returns how many of `ranges`, 0: not known.
  size_t ranges(Words& words, std::span<memory::Range> ranges) const;
  // The holder's thread state; none: no thread holds it.
  RemoteAddress holder(Snapshot& snapshot) const;
  // The same, read from the target now.
  RemoteAddress holder_now(memory::RemoteMemory& memory) const;
  // The relation of a thread that does not hold it. `in`: the call in which it is blocked; nullptr: not
  // known.
  profile::GilState state_of(const process::BlockedIn* in) const;
  // Whether the holder runs the cyclic garbage collector.
  bool collecting(Snapshot& snapshot) const;

 private:
  const python::Interpreter* python_ = nullptr;
  RemoteAddress interpreter_, gil_;
};

}  // namespace phlox::sampler
