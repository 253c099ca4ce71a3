// Copies a recording as it is at this moment, while its recorder continues to write.
#pragma once

#include <optional>
#include <string>

#include "phlox/base/result.h"
#include "phlox/recording/writer.h"

namespace phlox::recording {

// Copies the committed data to `to`, as a finished recording of its own, in place of an old one. The recorder
// is not delayed, and may be this very process. The copy has meta snapshot_of.
Result<void> snapshot(const std::string& from, const std::string& to, std::optional<Owner> owner = {});

}  // namespace phlox::recording
