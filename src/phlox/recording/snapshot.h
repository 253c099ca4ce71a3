// A copy of a recording as it is at this moment, while its recorder goes on writing.
#pragma once

#include <optional>
#include <string>

#include "phlox/base/result.h"
#include "phlox/recording/writer.h"

namespace phlox::recording {

// What was committed, as a finished recording of its own in `to`, in place of one that was there. The
// recorder is not held up, and may be this very process. Says so in it (meta: snapshot_of).
Result<void> snapshot(const std::string& from, const std::string& to, std::optional<Owner> owner = {});

}  // namespace phlox::recording
