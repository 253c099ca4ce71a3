#include "phlox/sampler/session/scheduling.h"

#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>

namespace phlox::sampler {
namespace {

// include/uapi/linux/sched/types.h; glibc 2.36 has neither the struct nor the call.
struct SchedAttr {
  uint32_t size = sizeof(SchedAttr);
  uint32_t policy = 0;
  uint64_t flags = 0;
  int32_t nice = 0;
  uint32_t priority = 0;
  uint64_t runtime = 0;
  uint64_t deadline = 0;
  uint64_t period = 0;
  uint32_t util_min = 0;
  uint32_t util_max = 0;
};

// The smallest slice that can be requested in the fair class (kernel/sched/syscalls.c since 6.12: 0.1 ms to
// 100 ms).
constexpr uint64_t kShortestSlice = 100'000;
// CPU time that a real-time thread of ours may use without sleeping before the kernel sends SIGXCPU, then
// SIGKILL. A turn takes microseconds, so this would be a bug, and it is better that we end than that the
// machine freezes.
constexpr rlim_t kRealTimeLimitUs = 500'000;

}  // namespace

SchedulingClass take_best_class(bool allow_real_time) {
  ::prctl(PR_SET_TIMERSLACK, 1UL);
  if (allow_real_time) {
    rlimit limit{};
    if (::getrlimit(RLIMIT_RTTIME, &limit) == 0 &&
        (limit.rlim_cur == RLIM_INFINITY || limit.rlim_cur > kRealTimeLimitUs)) {
      limit.rlim_cur = kRealTimeLimitUs;
      ::setrlimit(RLIMIT_RTTIME, &limit);
    }
    sched_param parameter{};
    parameter.sched_priority = 1;
    if (::sched_setscheduler(0, SCHED_FIFO | SCHED_RESET_ON_FORK, &parameter) == 0)
      return SchedulingClass::real_time;
  }
  SchedAttr attr;
  attr.policy = SCHED_OTHER;
  attr.flags = 1;  // SCHED_FLAG_RESET_ON_FORK
  attr.runtime = kShortestSlice;
  if (::syscall(SYS_sched_setattr, 0, &attr, 0) == 0) {
    // Kernels before 6.12 accept the call and ignore the slice: reading it back shows what was granted.
    SchedAttr granted;
    if (::syscall(SYS_sched_getattr, 0, &granted, sizeof granted, 0) == 0 &&
        granted.runtime == kShortestSlice) {
      return SchedulingClass::short_slice;
    }
  }
  return SchedulingClass::ordinary;
}

}  // namespace phlox::sampler
