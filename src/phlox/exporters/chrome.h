// Trace events as chrome://tracing defined them, JSON: a timeline that Perfetto, chrome://tracing, Speedscope
// and many scripts read. docs/formats.md is the reference.
#pragma once

#include <ostream>
#include <string>

#include "phlox/base/result.h"
#include "phlox/profile/profile.h"
#include "phlox/view/view.h"

namespace phlox::exporters {

Result<void> write_chrome(const profile::Profile& profile, const view::Choices& choices,
                          const std::string& title, std::ostream& out);

}  // namespace phlox::exporters
