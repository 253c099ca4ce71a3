#include "phlox/sampler/capture/native_half.h"

#include <algorithm>

namespace phlox::sampler {
namespace {

// A thread that no event has caught for this many intervals is stopped once, unless stops were ruled out: it
// runs on a CPU that we may not use, or in the kernel where our event cannot see it.
constexpr int kStopPatience = 20;
constexpr Nanoseconds kShortestPatience = kSecond / 20;
// If no thread runs, no event comes, but the others are still sampled: after a random interval plus this
// fraction of one, so that an event is likely to catch a running thread first.
constexpr double kWithoutEvent = 0.6;
// A worker that is not woken checks by itself after this long.
constexpr Nanoseconds kEventsOnlyPause = kSecond / 4;
// A thread that never runs is checked again after this long.
constexpr Nanoseconds kIdlePause = 5'000'000;
// A thread that moved to another CPU this many times is stopped there.
constexpr int kMeetings = 3;

}  // namespace

NativeHalf::NativeHalf(pid_t pid, NativeSource asked, Nanoseconds interval, bool real_time,
                       process::StopCounts& stops, Workers& workers)
    : asked_(asked),
      interval_asked_(interval),
      patience_(std::max(kStopPatience * interval, kShortestPatience)),
      workers_(workers),
      stop_(pid, stops) {
  if (real_time) granted_.scheduling = SchedulingClass::real_time;
  granted_.stops = true;
  granted_.events = interval > 0;
  in_use_ = running_source(asked, granted_);
  if (in_use_ == NativeSource::perf)
    perf_.emplace(interval, static_cast<uint64_t>(clock_now(CLOCK_REALTIME)), workers);
}

NativeCapture* NativeHalf::hold_running(pid_t tid, process::ThreadProbe& probe, Nanoseconds waiting,
                                        unwind::Registers& registers, NativeCapture::Held& held) {
  using Held = NativeCapture::Held;
  bool stop = in_use_ == NativeSource::ptrace;
  held = Held::refused;
  waited_for_cpu_.reset();
  if (in_use_ == NativeSource::perf) {
    held = perf_->hold(tid, probe, registers);
    if (held == Held::yes) return &*perf_;
    if (held == Held::refused) {
      granted_.events = false;
      in_use_ = running_source(asked_, granted_);
      stop = in_use_ == NativeSource::ptrace;
    } else {
      stop = asked_ == NativeSource::automatic && waiting > patience_;
      held = Held::later;
    }
  }
  if (stop) {
    const Held stopped = stop_on_its_cpu(tid, probe, registers);
    if (stopped == Held::yes) {
      held = stopped;
      return &stop_;
    }
    // Refused for this one thread: another process traces it.
    if (stopped != Held::refused || in_use_ == NativeSource::ptrace) held = stopped;
  }
  if (held == Held::later) wait_on(tid, waiting);
  return nullptr;
}

// A stop from another CPU takes effect where the thread next leaves the kernel (Workers::wake_up_on): in a
// program that writes for 15 % of its time, 98 % of the samples were in a write.
NativeCapture::Held NativeHalf::stop_on_its_cpu(pid_t tid, process::ThreadProbe& probe,
                                                unwind::Registers& registers) {
  using Held = NativeCapture::Held;
  if (sampled_once()) return stop_.hold(tid, probe, registers);
  for (int meeting = 1;; ++meeting) {
    const int cpu = probe.cpu();
    bool here = cpu >= 0 && cpu == workers_.current().cpu;
    if (!here && cpu >= 0 && workers_.wake_up_on(cpu, interval_asked_)) {
      here = true;
      // It may be waiting in a call by now, which a stop would interrupt.
      const auto in = probe.blocked_in();
      if (!in) return Held::gone;
      if (!in->running) return Held::running;
    }
    if (here) waited_for_cpu_ = workers_.current().found_it_waiting(probe);
    const Held held = stop_.hold(tid, probe, registers);
    if (held != Held::yes || !here || meeting == kMeetings || probe.cpu() == workers_.current().cpu)
      return held;
    stop_.let_go();
  }
}

void NativeHalf::wait_on(pid_t tid, Nanoseconds waiting) {
  if (waiting < longest_waiting_) return;
  longest_ = tid;
  longest_waiting_ = waiting;
}

EventState NativeHalf::event_state(pid_t tid, Nanoseconds waiting) {
  if (in_use_ != NativeSource::perf || waiting > patience_) return {};
  const EventState event = perf_->event_state(tid);
  if (event.kind == EventState::Kind::awake) wait_on(tid, waiting);
  return event;
}

uint64_t NativeHalf::longest_pause() const {
  if (in_use_ != NativeSource::perf || interval_ == 0) return 1;
  return static_cast<uint64_t>(std::max<Nanoseconds>(kIdlePause / interval_, 1));
}

NativeCapture* NativeHalf::hold(pid_t tid, process::ThreadProbe& probe, Nanoseconds waiting, bool caught,
                                unwind::Registers& registers, NativeCapture::Held& held) {
  using Held = NativeCapture::Held;
  held = caught ? Held::running : blocked_.hold(tid, probe, registers);
  was_blocked_ = held == Held::yes;
  if (held == Held::running) return hold_running(tid, probe, waiting, registers, held);
  if (was_blocked_ && (blocked_.last().number < 0 || sampled_once())) {
    if (NativeCapture* stopped = hold_stopped(tid, probe, registers)) return stopped;
  }
  return &blocked_;
}

NativeCapture* NativeHalf::hold_stopped(pid_t tid, process::ThreadProbe& probe,
                                        unwind::Registers& registers) {
  using Held = NativeCapture::Held;
  if (asked_ != NativeSource::automatic && asked_ != NativeSource::ptrace) return nullptr;
  const auto stat = probe.stat();
  if (!stat || stat->state != 'T') return nullptr;
  unwind::Registers all;
  if (stop_.hold(tid, probe, all) != Held::yes) return nullptr;
  registers = all;
  return &stop_;
}

pid_t NativeHalf::take_longest_waiting() {
  const pid_t tid = longest_;
  longest_ = 0;
  longest_waiting_ = 0;
  return tid;
}

Woken NativeHalf::wait(Worker& worker, Nanoseconds interval, TurnLock& turn_lock) {
  if (in_use_ != NativeSource::perf) return Woken::nothing_to_wait_for;
  interval_ = interval;
  perf_->set_interval(interval);
  const auto more = static_cast<Nanoseconds>(kWithoutEvent * static_cast<double>(interval));
  const Nanoseconds pause = worker.events_only ? kEventsOnlyPause : more + perf_->draw();
  return perf_->wait(worker, clock_now() + pause, turn_lock);
}

}  // namespace phlox::sampler
