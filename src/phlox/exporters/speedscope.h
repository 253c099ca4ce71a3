// The JSON of speedscope.app (its file-format-spec.ts, version 0.0.1): one "sampled" profile for each thread,
// in the order of time, so that both its views, time order and left heavy, work. docs/formats.md is the
// reference.
#pragma once

#include <ostream>
#include <string>

#include "phlox/base/result.h"
#include "phlox/profile/profile.h"
#include "phlox/view/view.h"

namespace phlox::exporters {

Result<void> write_speedscope(const profile::Profile& profile, const view::Choices& choices,
                              const std::string& title, std::ostream& out);

}  // namespace phlox::exporters
