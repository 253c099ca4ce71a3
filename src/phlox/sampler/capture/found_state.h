// The state in which a sample finds a thread, by the kernel's account since its last one. Pure.
#pragma once

#include <optional>

#include "phlox/base/clock.h"
#include "phlox/process/thread_probe.h"
#include "phlox/profile/model.h"
#include "phlox/sampler/observe/records.h"

namespace phlox::sampler {

// The state of a thread that is not blocked, by the time since the last sample. The kernel shows how long it
// waited for a CPU only when it runs again: a thread that a quota or other threads keep from running for long
// shows neither. Then `off_cpu` decides: the run time is exact, because the thread is queued.
inline profile::CpuState awake_state(const process::SchedStat& since, bool off_cpu) {
  if (since.run_ns != 0 || since.wait_ns != 0)
    return since.run_ns >= since.wait_ns ? profile::CpuState::running : profile::CpuState::runnable;
  return off_cpu ? profile::CpuState::runnable : profile::CpuState::running;
}
// The same for a thread that is held where it is.
inline profile::CpuState held_state(const process::SchedStat& now, const process::SchedStat& before) {
  return awake_state(now - before, !now.off());
}

// It ran for almost all of the time, and has most probably not left its CPU now: not worth a check.
inline bool hardly_waited(const process::SchedStat& since, Nanoseconds wall) {
  return wall - static_cast<Nanoseconds>(since.run_ns) < wall / 32;
}

// `waited`: whether it is known to have left its CPU before the sample. A thread leaves its CPU where the
// kernel takes it: at the end of its time slice, and where it wakes another thread. That place has no more to
// do with its CPU time than any other.
inline void set_awake(SampleState& state, std::optional<bool> waited, profile::CpuState otherwise) {
  state.ran_elsewhere = waited.value_or(false);
  if (!waited) state.cpu_state = otherwise;
  if (waited) state.cpu_state = *waited ? profile::CpuState::runnable : profile::CpuState::running;
}

// Where that is not known, a thread that waits for a CPU is taken to have used it there; unless it slept
// since the last sample: then it may have been woken, and ran elsewhere.
inline bool may_have_been_woken(Nanoseconds wall, const process::SchedStat& since) {
  return wall - static_cast<Nanoseconds>(since.run_ns + since.wait_ns) > wall / 8;
}

}  // namespace phlox::sampler
