#include "phlox/sampler/capture/observed_thread.h"

#include <utility>

namespace phlox::sampler {

void ObservedThread::saw(SampleLog& log, const ThreadSample& sample, const process::SchedStat& stat,
                         uint64_t tick, const std::vector<CodeLocation>* frames, const NativeParts& native) {
  const process::SchedStat since = stat - seen;
  charge.add(static_cast<Nanoseconds>(since.run_ns), may_have_been_woken(sample.time.wall, since));
  const Nanoseconds carried = cpu_carried;
  if (log.charges(sample)) cpu_carried = charge.charge(carried, sample.time.wall);
  const Nanoseconds kept = carried - cpu_carried;
  log.saw(*this, sample, frames, native);
  cpu_carried += kept;
  seen = stat;
  was_blocked = sample.state.cpu_state == profile::CpuState::blocked;
  blocked_since = was_blocked ? event.last : 0;
  idle_samples = empty_samples = 0;
  last_tick = tick;
  next_tick = tick + 1;
}

uint64_t ObservedThread::did_not_run(SampleLog& log, const process::SchedStat& stat, uint64_t tick,
                                     Nanoseconds now) {
  const uint64_t turns = tick - std::exchange(last_tick, tick);
  log.did_not_run(*this, now, turns);
  seen = stat;
  ++idle_samples;
  return turns;
}

void ObservedThread::reject(SampleLog& log, profile::GilState gil, Nanoseconds now, Rejected why) {
  ThreadSample sample = sample_at(index, now, last_time);
  sample.python.gil_state = gil;
  if (const auto stat = probe->schedstat()) {
    sample.time.cpu = std::exchange(cpu_carried, 0) + static_cast<Nanoseconds>((*stat - seen).run_ns);
    seen = *stat;
  }
  log.reject(*this, sample, why);
  was_blocked = false;
  ++empty_samples;
}

}  // namespace phlox::sampler
