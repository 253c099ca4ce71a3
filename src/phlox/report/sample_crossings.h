// The changes between neighbouring samples of each thread, for their sampling error (sampling_error.h). Pure.
#pragma once

#include <cstdint>
#include <vector>

#include "phlox/report/sampling_error.h"
#include "phlox/view/view.h"

namespace phlox::report {

// Waits that the kernel timed (for a CPU, too) begin and end exactly; only time on a CPU is sampled.
// `node_of`: by stack.
Crossings crossings_of(const profile::Profile& profile, const view::SampleFilter& filter,
                       const std::vector<uint32_t>& node_of);

}  // namespace phlox::report
