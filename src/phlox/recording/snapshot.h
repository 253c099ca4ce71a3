// Copies a recording as it is at this moment, while its recorder continues to write.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "phlox/base/clock.h"
#include "phlox/base/result.h"
#include "phlox/recording/writer.h"

namespace phlox::recording {

// A part of a recording, by CLOCK_MONOTONIC: the samples that overlap it, and the events in it. Sums over the
// whole recording, which have no time, are left out: what tasks awaited. Counters stay those of the whole.
struct Part {
  Nanoseconds from = 0, to = 0;
  std::vector<std::pair<std::string, std::string>> meta = {};  // added
};

// Copies the committed data to `to`, as a finished recording of its own, in place of an old one. The recorder
// is not delayed, and may be this very process. The copy has meta snapshot_of.
// `part`: only this of it.
Result<void> snapshot(const std::string& from, const std::string& to, std::optional<Owner> owner = {},
                      const std::optional<Part>& part = {});

}  // namespace phlox::recording
