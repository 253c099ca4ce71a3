// Numbers of the system calls in which a thread blocks, on both machines (system_calls.inc).
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <string_view>

#include "phlox/base/machine.h"

namespace phlox {

struct SystemCall {
  std::string_view name;
  int16_t x86_64 = -1;   // -1: not there
  int16_t aarch64 = -1;  // -1: not there

  constexpr int16_t number(bool on_aarch64) const { return on_aarch64 ? aarch64 : x86_64; }
};

inline constexpr SystemCall kSystemCalls[] = {
#define PHLOX_SYSTEM_CALL(name, on_x86_64, on_aarch64) {#name, on_x86_64, on_aarch64},
#include "phlox/base/system_calls.inc"
#undef PHLOX_SYSTEM_CALL
};

// Looks up the table; an unknown name does not compile.
consteval SystemCall system_call(std::string_view name) {
  const auto* found = std::find_if(std::begin(kSystemCalls), std::end(kSystemCalls),
                                   [name](const SystemCall& call) { return call.name == name; });
  if (found == std::end(kSystemCalls)) throw "no such system call in the table";
  return *found;
}

template <class Calls>
constexpr bool is_call(const Calls& calls, int64_t number, bool on_aarch64) {
  return number >= 0 && std::any_of(std::begin(calls), std::end(calls), [&](const SystemCall& call) {
           return call.number(on_aarch64) == number;
         });
}

}  // namespace phlox
