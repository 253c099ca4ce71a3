// Which span of a trace a thread works for, if its process publishes that (process/thread_context.h): from
// the copy of the memory in which its stack is read, so that both are proved together.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>

#include "phlox/process/thread_context.h"
#include "phlox/profile/model.h"
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
    const auto load = [&](RemoteAddress at, uint64_t& word) {
      return is_plausible(at) && snapshot.load(at, word);
    };
    uint64_t record = 0;
    if (!load(process::address_of(*variable, RemoteAddress(self + variable->block), load), record) ||
        !is_plausible(RemoteAddress(record)))
      return 0;
    const std::byte* const bytes = snapshot.find(RemoteAddress(record), sizeof(process::ThreadContext));
    if (bytes == nullptr) return 0;
    process::ThreadContext context;
    std::memcpy(&context, bytes, sizeof context);
    if (!context.is_set()) return 0;
    profile::TraceIds ids;
    std::copy(std::begin(context.trace), std::end(context.trace), ids.trace.begin());
    std::copy(std::begin(context.span), std::end(context.span), ids.span.begin());
    return numbers_.of(ids);
  }

 private:
  const Variable* variable_;
  TraceNumbers numbers_;
};

}  // namespace phlox::sampler
