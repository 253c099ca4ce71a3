// Sentences about what other processes, the host and quotas did with the CPUs. findings.cpp puts them into
// findings.
#pragma once

#include <string>

#include "phlox/profile/profile.h"
#include "phlox/report/report.h"

namespace phlox::report {

// CPU time of processes that the recorded ones started and that are not in the recording.
Nanoseconds used_by_descendants(const Report& report);
// "4 processes sh -c … (7.6 s)": those that used most.
std::string descendant_words(const Report& report);

// Why threads that could run had no CPU, by the kernel's counts during the recording. `used`: CPU time of the
// recorded processes; `active`: how long their threads ran or could run. Adds its evidence to `numbers` and
// `names`.
std::string why_no_cpu(const profile::Profile& profile, const Report& report, Nanoseconds used,
                       Nanoseconds active, Numbers& numbers, Names& names);

}  // namespace phlox::report
