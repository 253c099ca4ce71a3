// Names of the system calls in which a thread blocks.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "phlox/profile/profile.h"

namespace phlox::view {

// The name for -1: a thread that was off the CPU without a call of its own (stopped, or waiting for a page of
// memory).
inline constexpr std::string_view kNoSystemCall = "no system call";
// The name for kCallNotRecorded.
inline constexpr std::string_view kSystemCallNotRecorded = "call not recorded";

// The machine of the recorded program, as uname names it; recordings without it are of x86_64. Valid as long
// as the profile.
std::string_view machine_of(const profile::Profile& profile);

// `machine` as uname names it: "x86_64", "aarch64". "system call 999" for a call in which no thread blocks.
std::string system_call_name(int16_t number, std::string_view machine);

}  // namespace phlox::view
