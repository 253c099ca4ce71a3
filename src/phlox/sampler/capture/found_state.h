// The state in which a sample finds a thread, by the kernel's account since its last one. Pure.
#pragma once

#include "phlox/base/clock.h"
#include "phlox/process/thread_probe.h"
#include "phlox/profile/model.h"

namespace phlox::sampler {

// The state of a thread that is not blocked, by the time since the last sample. The kernel shows how long it
// waited for a CPU only when it runs again: a thread that a quota or other threads keep from running for long
// shows neither. Then `is_off_cpu` decides, which may cost more: it checks whether the run time is exact,
// because the thread is queued.
inline profile::CpuState awake_state(const process::SchedStat& since, const auto& is_off_cpu) {
  if (since.run_ns != 0 || since.wait_ns != 0)
    return since.run_ns >= since.wait_ns ? profile::CpuState::running : profile::CpuState::runnable;
  return is_off_cpu() ? profile::CpuState::runnable : profile::CpuState::running;
}
// The same for a thread that is held where it is.
inline profile::CpuState held_state(const process::SchedStat& now, const process::SchedStat& before) {
  return awake_state(now - before, [&now] { return !now.off(); });
}

// A thread that waits for a CPU was pre-empted where it is, and used the CPU there; unless it slept since the
// last sample: then it may have been woken, and ran elsewhere.
inline bool may_have_been_woken(Nanoseconds wall, const process::SchedStat& since) {
  return wall - static_cast<Nanoseconds>(since.run_ns + since.wait_ns) > wall / 8;
}

}  // namespace phlox::sampler
