// Labels for a finished recording: stretches of its time with a name (docs/recording.md, table label).
#pragma once

#include <string>
#include <vector>

#include "phlox/base/result.h"
#include "phlox/profile/model.h"

namespace phlox::recording {

// All of them or none, behind those that are there. The file must have been read before: it is trusted to be
// a recording.
Result<void> add_labels(const std::string& path, const std::vector<profile::TimeLabel>& labels);

}  // namespace phlox::recording
