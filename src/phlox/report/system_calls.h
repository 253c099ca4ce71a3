// Names of the system calls in which a thread blocks.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace phlox::report {

// `machine` as uname says it: "x86_64", "aarch64". "system call 999" for one that nobody blocks in; "unknown"
// for -1.
std::string system_call_name(int16_t number, std::string_view machine);

}  // namespace phlox::report
