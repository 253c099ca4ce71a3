// Numbers the spans that threads work for: each is sent to the consumer once, and samples give its number.
#pragma once

#include <cstdint>
#include <map>

#include "phlox/profile/model.h"
#include "phlox/sampler/observe/records.h"
#include "phlox/sampler/observe/sample_log.h"

namespace phlox::sampler {

class TraceNumbers {
 public:
  explicit TraceNumbers(SampleLog& log) : log_(log) {}

  // 0: there was no room for the record.
  uint32_t of(const profile::TraceIds& ids) {
    // A number that the consumer has forgotten is not used again.
    if (known_.size() >= kTracesKnown / 2) known_.clear();
    const auto [at, fresh] = known_.try_emplace(ids, last_ + 1);
    if (!fresh) return at->second;
    TraceRecord record;
    record.trace = at->second;
    record.ids = ids;
    if (log_.write(record, "")) return ++last_;
    known_.erase(at);
    return 0;
  }

 private:
  SampleLog& log_;
  std::map<profile::TraceIds, uint32_t> known_;
  uint32_t last_ = 0;
};

}  // namespace phlox::sampler
