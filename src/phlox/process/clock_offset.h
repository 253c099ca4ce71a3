// How far our CLOCK_MONOTONIC is ahead of the host's, in a time namespace (time_namespaces(7)). Times that
// the kernel itself records (BPF's clock, perf events) are the host's; clock_now() and /proc have the
// namespace's.
#pragma once

#include <optional>
#include <string_view>

#include "phlox/base/clock.h"

namespace phlox::process {

// From the text of /proc/self/timens_offsets, seconds and nanoseconds after "monotonic".
std::optional<Nanoseconds> parse_monotonic_offset(std::string_view text);
// 0: we are in no time namespace, or the kernel has none.
Nanoseconds monotonic_offset();

}  // namespace phlox::process
