// How far our CLOCK_MONOTONIC is ahead of the host's, in a time namespace (time_namespaces(7)). What the
// kernel itself writes down (BPF's clock, perf events) is the host's; clock_now() and /proc are the
// namespace's.
#pragma once

#include <optional>
#include <string_view>

#include "phlox/base/clock.h"

namespace phlox::target {

// Of the text of /proc/self/timens_offsets, seconds and nanoseconds behind "monotonic".
std::optional<Nanoseconds> parse_monotonic_offset(std::string_view text);
// 0: we are in no time namespace, or the kernel has none.
Nanoseconds monotonic_offset();

}  // namespace phlox::target
