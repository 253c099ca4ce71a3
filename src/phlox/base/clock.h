// The recording's time: nanoseconds of CLOCK_MONOTONIC.
#pragma once

#include <cstdint>
#include <ctime>

namespace phlox {

using Nanoseconds = int64_t;

inline constexpr Nanoseconds kSecond = 1'000'000'000;

inline Nanoseconds clock_now(clockid_t clock = CLOCK_MONOTONIC) {
  timespec t{};
  clock_gettime(clock, &t);
  return Nanoseconds{t.tv_sec} * kSecond + t.tv_nsec;
}

}  // namespace phlox
