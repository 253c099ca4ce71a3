// Who holds a GIL, and who waits for it: of one interpreter, by its words in the target's memory, as of a
// copy or now. Where a version has no GIL that can be found, the current thread state says who holds it.
// Looks at nothing else, and keeps nothing from one question to the next. Called by the worker that holds the
// turn lock.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "phlox/memory/remote_memory.h"
#include "phlox/profile/model.h"
#include "phlox/python/interpreter.h"
#include "phlox/sampler/capture/snapshot.h"
#include "phlox/target/thread_probe.h"

namespace phlox::sampler {

class Gil {
 public:
  // The words that say who holds it.
  struct Words {
    static constexpr size_t kRanges = 2;
    int32_t locked = 1;
    uint64_t last = 0;
    RemoteAddress holder() const { return locked > 0 ? RemoteAddress(last) : RemoteAddress{}; }
  };

  Gil() = default;
  // `interpreter`: PyInterpreterState; `gil`: struct of last_holder and locked, where it is known.
  Gil(const python::Interpreter& python, RemoteAddress interpreter, RemoteAddress gil)
      : python_(&python), interpreter_(interpreter), gil_(gil) {}

  // Where the words lie, each to be read into `words`; how many of `ranges`, 0: not known.
  size_t ranges(Words& words, std::span<memory::Range> ranges) const;
  // The thread state that holds it; none: nobody does.
  RemoteAddress holder(Snapshot& snapshot) const;
  // The same, asked of the target now.
  RemoteAddress holder_now(memory::RemoteMemory& memory) const;
  // What a thread that does not hold it has to do with it. `in`: what it is blocked in; nullptr: not asked.
  profile::GilState state_of(const target::BlockedIn* in) const;
  // Whether the holder runs the cyclic garbage collector.
  bool collecting(Snapshot& snapshot) const;

 private:
  const python::Interpreter* python_ = nullptr;
  RemoteAddress interpreter_, gil_;
};

}  // namespace phlox::sampler
