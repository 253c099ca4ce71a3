// A trace of Perfetto (ui.perfetto.dev, its trace processor): slices and states of every thread on tracks,
// written packet by packet. Field numbers are those of github.com/google/perfetto, protos/perfetto/trace/.
// docs/formats.md is the reference.
#pragma once

#include <ostream>

#include "phlox/base/result.h"
#include "phlox/profile/profile.h"
#include "phlox/view/view.h"

namespace phlox::exporters {

Result<void> write_perfetto(const profile::Profile& profile, const view::Choices& choices, std::ostream& out);

}  // namespace phlox::exporters
