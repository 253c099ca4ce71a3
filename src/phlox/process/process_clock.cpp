#include "phlox/process/process_clock.h"

namespace phlox::process {

ProcessClock::ProcessClock(pid_t pid) {
  clockid_t clock{};
  if (::clock_getcpuclockid(pid, &clock) == 0) clock_ = clock;
}

std::optional<Nanoseconds> ProcessClock::used() const {
  timespec time{};
  if (!clock_ || ::clock_gettime(*clock_, &time) != 0) return {};
  return Nanoseconds{time.tv_sec} * kSecond + time.tv_nsec;
}

}  // namespace phlox::process
