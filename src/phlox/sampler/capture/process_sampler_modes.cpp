// ProcessSampler's modes: how a thread is held while its Python frames are read.
#include <algorithm>
#include <optional>

#include "phlox/sampler/capture/found_state.h"
#include "phlox/sampler/capture/process_sampler.h"

namespace phlox::sampler {
namespace {

using profile::CpuState;
using profile::GilState;
using profile::Quality;

}  // namespace

// On the thread's CPU: a sample counts if the thread was not scheduled in between the first and the last
// read, and its CPU, read last, is ours. Together they prove that it was in this CPU's queue, behind us,
// throughout.
bool ProcessSampler::read_standing_still(PythonThread& slot, Nanoseconds now, bool holds, Seen& seen) {
  Domain& domain = threads_.domains()[slot.domain];
  if (slot.last_cpu != workers_.current().cpu) {
    const int cpu = slot.cpu_known_at == tick_ ? slot.last_cpu : cpu_of(slot);
    if (cpu >= 0 && cpu != workers_.current().cpu && !workers_.wake_up_on(cpu, config_.interval)) {
      ++counts_.cpu_refused;
      return read_from_elsewhere(slot, now, holds, seen);
    }
    slot.last_cpu = cpu;
  }
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    if (attempt > 0) ++counts_.retried;
    const auto before = slot.probe->schedstat();
    if (!before) {
      threads_.has_ended(slot);
      return true;
    }
    capture_for(slot.index, slot.rseq_cpu);
    const uint64_t codes = reader_.codes().resolved();
    if (holds && domain.gil.holder(snapshot_) != slot.tstate)
      return false;  // the holder has changed: the caller tries again
    const StackReader::Reading reading = read_stack(slot);
    if (!slot.in_python()) return true;
    // The CPU must be read after the last byte of the memory.
    const int cpu = reader_.codes().resolved() == codes && snapshot_.last().value_or(-1) >= 0
                        ? *snapshot_.last()
                        : cpu_of(slot);
    const auto after = slot.probe->schedstat();
    if (!after) {
      threads_.has_ended(slot);
      return true;
    }
    slot.last_cpu = cpu;
    // On another CPU and asleep: it is as unmoved there as here. Following it would take longer than its
    // sleep, and miss it.
    std::optional<process::BlockedIn> asleep;
    if (cpu != workers_.current().cpu) {
      asleep = slot.probe->blocked_in();
      if (asleep && (asleep->running || !still_unmoved(slot, *before))) asleep.reset();
    }
    if (cpu != workers_.current().cpu && !asleep) {
      if (!workers_.wake_up_on(cpu, config_.interval)) {
        ++counts_.cpu_refused;
        return read_from_elsewhere(slot, now, holds, seen);
      }
      continue;
    }
    if (!unmoved(*before, *after)) continue;
    seen.state.cpu_number = static_cast<int16_t>(cpu);
    seen.state.quality = reading.quality;
    if (after->off()) {
      schedstat_off_ = true;
      if (seen.state.quality == Quality::ok) seen.state.quality = Quality::unproved;
    }
    if (!reading.whole) {
      // It did not run, yet is unreadable: another attempt reads the same.
      reject(slot, now, reading.rejected);
      return true;
    }
    // The kernel's accounts since the last sample tell running from waiting for a CPU. Only a thread that did
    // little of either needs another check.
    const process::SchedStat since = *after - slot.seen;
    const auto wall = static_cast<uint64_t>(std::max<Nanoseconds>(now - slot.last_time, 1));
    seen.state.cpu_state = held_state(*after, slot.seen);
    process::BlockedIn in;
    if (asleep || since.run_ns + since.wait_ns < wall / 2) {
      if (const auto asked = asleep ? asleep : slot.probe->blocked_in()) {
        in = *asked;
        if (!in.running) is_in(slot, in, *after, seen);
      }
    }
    seen.python.gil_state = layout_.traits.free_threaded ? GilState::not_applicable
                            : holds                      ? GilState::holds
                                                         : domain.gil.state_of(&in);
    seen.python.collecting = holds && domain.gil.collecting(snapshot_);
    // A thread that has just taken the GIL is named a moment later (take_gil() sets `locked` before
    // `last_holder`). The holder is read again after the copy; otherwise another thread could run while
    // this one's stillness was proved.
    if (holds && domain.threads > 1 && !after->off() && (!slot.unbound || slot.stack_end) &&
        domain.gil.holder_now(memory_) == slot.tstate) {
      domain.frozen = &slot;
      domain.frozen_stat = *after;
      domain.frozen_sample = snapshot_.sample_number();
      domain.frozen_reads = snapshot_.follow_ups();
    }
    accept(slot, *after, now, seen, reading);
    return true;
  }
  reject(slot, now, Rejected::moved);
  return true;
}

// On any CPU: a thread blocked in a system call is read as it is, proved by the schedule counts. A running
// thread is stopped while it is read, if stops are allowed.
bool ProcessSampler::read_from_elsewhere(PythonThread& slot, Nanoseconds now, bool holds, Seen& seen) {
  using State = process::ThreadStop::State;
  Domain& domain = threads_.domains()[slot.domain];
  const bool may_stop = config_.mode != Mode::same_cpu && config_.mode != Mode::hands_off;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    if (attempt > 0) ++counts_.retried;
    const auto before = slot.probe->schedstat();
    if (!before) {
      threads_.has_ended(slot);
      return true;
    }
    // Checked at the last moment: the stop interrupts a call that begins in between.
    const auto in = slot.probe->blocked_in();
    const bool sleeps = in && !in->running;
    std::optional<process::ThreadStop> stop;
    if (may_stop && in && !sleeps) stop.emplace(config_.pid, *slot.probe, stops_);
    if (stop && stop->state() == State::gone) {
      threads_.has_ended(slot);
      return true;
    }
    if (stop && stop->state() == State::signalled) continue;
    const bool stopped = stop && stop->state() == State::stopped;
    capture_for(slot.index);
    if (holds && domain.gil.holder(snapshot_) != slot.tstate) return false;
    const StackReader::Reading reading = read_stack(slot);
    const auto after = slot.probe->schedstat();
    stop.reset();
    if (!slot.in_python()) return true;
    if (!after) {
      threads_.has_ended(slot);
      return true;
    }
    if (sleeps && !unmoved(*before, *after)) continue;
    if (stopped) ++counts_.stopped_alone;
    if (!reading.whole) {
      reject(slot, now, reading.rejected);
      return true;
    }
    seen.state.quality = reading.quality;
    if (after->off()) schedstat_off_ = true;
    const bool proved = stopped || (sleeps && !after->off());
    if (!proved && seen.state.quality == Quality::ok) seen.state.quality = Quality::unproved;
    if (sleeps) {
      is_in(slot, *in, *before, seen);
    } else {
      seen.state.cpu_state = stopped ? held_state(*after, slot.seen) : free_state(slot, *after);
    }
    seen.python.gil_state = layout_.traits.free_threaded ? GilState::not_applicable
                            : holds                      ? GilState::holds
                                                         : domain.gil.state_of(in ? &*in : nullptr);
    seen.python.collecting = holds && domain.gil.collecting(snapshot_);
    accept(slot, *after, now, seen, reading);
    return true;
  }
  reject(slot, now, Rejected::moved);
  return true;
}

bool ProcessSampler::read_running(PythonThread& slot, Nanoseconds now, bool holds, Seen& seen) {
  return on_its_cpu() ? read_standing_still(slot, now, holds, seen)
                      : read_from_elsewhere(slot, now, holds, seen);
}

}  // namespace phlox::sampler
