// Names of the system calls in which a thread blocks.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "phlox/profile/profile.h"

namespace phlox::profile {

// For -1: a thread that was off the CPU without a call of its own (stopped, or a page of memory to wait for).
inline constexpr std::string_view kNoSystemCall = "no system call";
// For kCallNotRecorded.
inline constexpr std::string_view kSystemCallNotRecorded = "call not recorded";

// What the recorded program ran on, as uname says it; recordings that do not say are of x86_64. Lives with
// the profile.
std::string_view machine_of(const Profile& profile);

// `machine` as uname says it: "x86_64", "aarch64". "system call 999" for one that nobody blocks in.
std::string system_call_name(int16_t number, std::string_view machine);

}  // namespace phlox::profile
