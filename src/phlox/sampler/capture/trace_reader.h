// Which span of a trace a thread works for, if its process publishes that (process/thread_context.h): from
// the copy of the memory in which its stack is read, so that both are proved together.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstring>
#include <span>

#include "phlox/process/thread_context.h"
#include "phlox/sampler/capture/snapshot.h"
#include "phlox/sampler/observe/trace_numbers.h"

namespace phlox::sampler {

class TraceReader {
 public:
  // Set by the recorder's thread once it is known; null until then.
  using Variable = std::atomic<const process::ThreadVariable*>;

  TraceReader(const Variable* variable, SampleLog& log) : variable_(variable), numbers_(log) {}

  // `self`: pthread_self() of the thread. 0: it works for none.
  uint32_t read(Snapshot& snapshot, uint64_t self) {
    const process::ThreadVariable* const variable =
        variable_ != nullptr ? variable_->load(std::memory_order_acquire) : nullptr;
    if (variable == nullptr || self == 0) return 0;
    const auto context =
        process::read_thread_context(*variable, self, [&](RemoteAddress at, std::span<std::byte> into) {
          const std::byte* const bytes = snapshot.find(at, into.size());
          if (bytes != nullptr) std::memcpy(into.data(), bytes, into.size());
          return bytes != nullptr;
        });
    return context ? numbers_.of({context->trace, context->span}) : 0;
  }

 private:
  const Variable* variable_;
  TraceNumbers numbers_;
};

}  // namespace phlox::sampler
