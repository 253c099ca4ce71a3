// Labels for a finished recording: named spans of its time (docs/recording.md, table label).
#pragma once

#include <string>
#include <vector>

#include "phlox/base/result.h"
#include "phlox/profile/model.h"

namespace phlox::recording {

// Adds all of them or none, after the existing ones. The file must have been read before: it is trusted to be
// a recording.
Result<void> add_labels(const std::string& path, const std::vector<profile::TimeLabel>& labels);

}  // namespace phlox::recording
