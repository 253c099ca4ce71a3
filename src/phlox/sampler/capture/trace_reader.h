// Which span of a trace a thread works for, if its process publishes that (process/thread_context.h): from
// the copy of the memory in which its stack is read, so that both are proved together.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>

#include "phlox/process/thread_context.h"
#include "phlox/profile/model.h"
#include "phlox/sampler/capture/snapshot.h"

namespace phlox::sampler {

class TraceReader {
 public:
  // Set by the recorder's thread once it is known; null until then.
  using Variable = std::atomic<const process::ThreadVariable*>;

  explicit TraceReader(const Variable* variable) : variable_(variable) {}

  // `self`: pthread_self() of the thread. None: it works for none.
  std::optional<profile::TraceIds> read(Snapshot& snapshot, uint64_t self) const {
    const process::ThreadVariable* const variable =
        variable_ != nullptr ? variable_->load(std::memory_order_acquire) : nullptr;
    if (variable == nullptr || self == 0) return {};
    const auto context =
        process::read_thread_context(*variable, self, [&](RemoteAddress at, std::span<std::byte> into) {
          const std::byte* const bytes = snapshot.find(at, into.size());
          if (bytes != nullptr) std::memcpy(into.data(), bytes, into.size());
          return bytes != nullptr;
        });
    return context ? std::optional(profile::TraceIds{context->trace, context->span}) : std::nullopt;
  }

 private:
  const Variable* variable_;
};

}  // namespace phlox::sampler
