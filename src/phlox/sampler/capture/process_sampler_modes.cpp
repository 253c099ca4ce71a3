// ProcessSampler's modes: how a thread is held while its frames are read. One loop reads them all
// (read_held), until a copy is proved to be of one moment.
#include <algorithm>
#include <optional>

#include "phlox/process/ended_thread.h"
#include "phlox/sampler/capture/found_state.h"
#include "phlox/sampler/capture/native_half.h"
#include "phlox/sampler/capture/process_sampler.h"

namespace phlox::sampler {

// One attempt at the frames of a thread.
struct ProcessSampler::Attempt {
  PythonThread& slot;
  Domain& domain;
  Nanoseconds now;
  bool holds;  // whether it must hold the GIL
  int number = 0;
  process::SchedStat before{}, after{};
  std::optional<process::BlockedIn> in{};  // the call in which it is blocked, if the hold has asked
  StackReader::Reading reading{};
  bool unproved = false;
  Seen seen{};
};

// A way to hold a thread. The functions are called in this order.
struct ProcessSampler::Hold {
  explicit Hold(ProcessSampler& sampler) : s_(sampler) {}
  virtual ~Hold() = default;

  // The count at the beginning; none: the thread is gone.
  virtual std::optional<process::SchedStat> before(const Attempt& a) { return a.slot.probe->schedstat(); }
  virtual Attempted hold(Attempt&) { return Attempted::go_on; }
  virtual void copy(Attempt& a) { s_.capture_for(a.slot.index); }
  virtual void copy_native(Attempt&) {}
  // The count at the end, while it is still held; before it, whatever must be read last.
  virtual std::optional<process::SchedStat> after(Attempt& a) { return a.slot.probe->schedstat(); }
  // Also called when another thread turned out to hold the GIL.
  virtual void release() {}
  virtual bool needs_python() const { return true; }
  // Whether it stood still.
  virtual Attempted prove(Attempt& a) {
    a.unproved = a.after.off();
    return unmoved(a.before, a.after) ? Attempted::go_on : Attempted::again;
  }
  virtual void find_state(Attempt& a) = 0;
  void find_asleep(Attempt& a, const process::SchedStat& since) { s_.is_in(a.slot, *a.in, since, a.seen); }

  ProcessSampler& s_;
};

Attempted ProcessSampler::read_held(PythonThread& slot, Nanoseconds now, bool holds, Hold& hold) {
  const Attempted next = attempt(counts_.retried, [&](int number) {
    Attempt a{slot, threads_.domains()[slot.domain], now, holds, number};
    const auto before = hold.before(a);
    if (!before) return Attempted::ended;
    a.before = *before;
    const Attempted held = hold.hold(a);
    return held == Attempted::go_on ? read_once(a, hold) : held;
  });
  if (next == Attempted::again) reject(slot, now, Rejected::moved);
  if (next == Attempted::ended) threads_.has_ended(slot);
  return next == Attempted::again || next == Attempted::ended ? Attempted::settled : next;
}

Attempted ProcessSampler::read_once(Attempt& a, Hold& hold) {
  hold.copy(a);
  if (a.holds && a.domain.gil.holder(snapshot_) != a.slot.tstate) {
    hold.release();
    return Attempted::other_holder;
  }
  hold.copy_native(a);
  a.reading = read_stack(a.slot);
  const auto after = hold.after(a);
  hold.release();
  if (hold.needs_python() ? !a.slot.in_python() : !a.slot.alive) return Attempted::settled;
  if (!after) return Attempted::ended;
  a.after = *after;
  if (const Attempted next = hold.prove(a); next != Attempted::go_on) return next;
  if (!a.reading.whole) {
    // It did not run, yet is unreadable: another attempt reads the same.
    reject(a.slot, a.now, a.reading.rejected);
    return Attempted::settled;
  }
  if (a.after.off()) schedstat_off_ = true;
  a.seen.state.quality = a.reading.quality;
  if (a.unproved && a.reading.quality == profile::Quality::ok)
    a.seen.state.quality = profile::Quality::unproved;
  hold.find_state(a);
  a.seen.python.gil_state =
      a.holds ? profile::GilState::holds : a.domain.gil.state_of(a.in ? &*a.in : nullptr);
  a.seen.python.collecting = a.holds && a.domain.gil.collecting(snapshot_);
  accept(a.slot, a.after, a.now, a.seen, a.reading);
  return Attempted::settled;
}

// ---- holds

// On the thread's CPU: a sample counts if the thread was not scheduled in between the first and the last
// read, and its CPU, read last, is ours. Together they prove that it was in this CPU's queue, behind us,
// throughout.
struct ProcessSampler::OnItsCpu : Hold {
  using Hold::Hold;

  // Moves us to its CPU. False: we may not use it.
  bool reach(PythonThread& slot) {
    if (slot.last_cpu == s_.workers_.current().cpu) return true;
    const int cpu = slot.cpu_known_at == s_.tick_ ? slot.last_cpu : s_.cpu_of(slot);
    if (cpu >= 0 && cpu != s_.workers_.current().cpu && !follow(cpu)) return false;
    slot.last_cpu = cpu;
    return true;
  }

  void copy(Attempt& a) override {
    s_.capture_for(a.slot.index, a.slot.rseq_cpu);
    codes_ = s_.reader_.codes().resolved();
  }
  std::optional<process::SchedStat> after(Attempt& a) override {
    // The CPU must be read after the last byte of the memory.
    cpu_ = s_.reader_.codes().resolved() == codes_ && s_.snapshot_.last().value_or(-1) >= 0
               ? *s_.snapshot_.last()
               : s_.cpu_of(a.slot);
    return a.slot.probe->schedstat();
  }
  Attempted prove(Attempt& a) override {
    a.slot.last_cpu = cpu_;
    if (cpu_ != s_.workers_.current().cpu) {
      // On another CPU and asleep: it is as unmoved there as here. Following it would take longer than its
      // sleep, and miss it.
      a.in = a.slot.probe->blocked_in();
      if (a.in && (a.in->running || !s_.still_unmoved(a.slot, a.before))) a.in.reset();
      if (!a.in) return follow(cpu_) ? Attempted::again : Attempted::refused;
    }
    return Hold::prove(a);
  }
  void find_state(Attempt& a) override {
    a.seen.state.cpu_number = static_cast<int16_t>(cpu_);
    const process::SchedStat since = a.after - a.slot.seen;
    const Nanoseconds wall = std::max<Nanoseconds>(a.now - a.slot.last_time, 1);
    std::optional<bool> waited;
    if (!a.in && !a.after.off() && !hardly_waited(since, wall))
      waited = s_.workers_.current().found_it_waiting(*a.slot.probe);
    set_awake(a.seen.state, waited, held_state(a.after, a.slot.seen));
    // A thread that ran until we came is not asleep, nor, where that is not known, one that ran or waited for
    // a CPU most of the time.
    if (!a.in && waited.value_or(since.run_ns + since.wait_ns < static_cast<uint64_t>(wall) / 2))
      a.in = a.slot.probe->blocked_in();
    if (a.in && !a.in->running) find_asleep(a, a.after);
    freeze(a);
  }

  bool follow(int cpu) {
    if (s_.workers_.wake_up_on(cpu, s_.config_.interval)) return true;
    ++s_.counts_.cpu_refused;
    return false;
  }
  // A thread that has just taken the GIL is named a moment later (take_gil() sets `locked` before
  // `last_holder`). The holder is read again after the copy; otherwise another thread could run while this
  // one's stillness was proved.
  void freeze(const Attempt& a) {
    Domain& domain = a.domain;
    if (!a.holds || domain.threads <= 1 || a.after.off() || (a.slot.unbound && !a.slot.stack_end) ||
        domain.gil.holder_now(s_.memory_) != a.slot.tstate)
      return;
    domain.frozen = &a.slot;
    domain.frozen_stat = a.after;
    domain.frozen_sample = s_.snapshot_.sample_number();
    domain.frozen_reads = s_.snapshot_.follow_ups();
  }

  int cpu_ = -1;
  uint64_t codes_ = 0;
};

// On any CPU: a thread blocked in a system call is read as it is, proved by the schedule counts. A running
// thread is stopped while it is read, if stops are allowed.
struct ProcessSampler::FromElsewhere : Hold {
  using Hold::Hold;

  Attempted hold(Attempt& a) override {
    using State = process::ThreadStop::State;
    // Checked at the last moment: the stop interrupts a call that begins in between.
    a.in = a.slot.probe->blocked_in();
    sleeps_ = a.in && !a.in->running;
    // A stop ends a wait for a CPU.
    if (!sleeps_) s_.judge_free(a.slot, a.before, a.now, a.seen.state);
    if (may_stop(s_.config_.mode) && a.in && !sleeps_)
      stop_.emplace(s_.config_.pid, *a.slot.probe, s_.stops_);
    stopped_ = stop_ && stop_->state() == State::stopped;
    const bool gone = stop_ && stop_->state() == State::gone;
    if (!gone && !(stop_ && stop_->state() == State::signalled)) return Attempted::go_on;
    release();
    return gone ? Attempted::ended : Attempted::again;
  }
  void release() override { stop_.reset(); }
  Attempted prove(Attempt& a) override {
    if (sleeps_ && !unmoved(a.before, a.after)) return Attempted::again;
    if (stopped_) ++s_.counts_.stopped_alone;
    a.unproved = !stopped_ && (!sleeps_ || a.after.off());
    return Attempted::go_on;
  }
  void find_state(Attempt& a) override {
    if (sleeps_) find_asleep(a, a.before);
  }

  bool sleeps_ = false, stopped_ = false;
  std::optional<process::ThreadStop> stop_;
};

// A thread that does not hold the GIL, and is blocked: what this turn has copied serves it, if it did not run
// since before.
struct ProcessSampler::AsItSleeps : Hold {
  using Hold::Hold;

  // Read before the memory was copied: a thread that is off the CPU now with the same count was off it
  // throughout.
  std::optional<process::SchedStat> before(const Attempt& a) override {
    return a.number == 0 && a.slot.first_valid ? std::optional(a.slot.first) : Hold::before(a);
  }
  Attempted hold(Attempt& a) override {
    PythonThread& slot = a.slot;
    if (slot.has_slept_on(a.before)) {
      s_.did_not_run(slot, a.before, a.now);
      return Attempted::settled;
    }
    if (s_.native_) return Attempted::refused;
    const bool is_frozen = a.number == 0 && slot.first_valid && !a.before.off() &&
                           a.domain.frozen != nullptr &&
                           a.domain.frozen_sample == s_.snapshot_.sample_number();
    if (is_frozen && s_.read_with_holder(slot, a.domain, a.now)) return Attempted::settled;
    a.in = slot.probe->blocked_in();
    if (a.in && process::has_ended(*a.in)) return Attempted::ended;
    if (a.in && !a.in->running) return Attempted::go_on;
    // Runs or is runnable: without the GIL its frames change only once it gets it.
    if (s_.layout_.traits.free_threaded) a.domain.runner = &slot;
    return Attempted::refused;
  }
  void copy(Attempt& a) override {
    // There is no copy in this turn yet: the first thread ended before one was made.
    const bool has_none = s_.snapshot_.sample_number() == s_.last_turns_sample_;
    if (a.number > 0 || !a.slot.first_valid || has_none) Hold::copy(a);
  }
  void find_state(Attempt& a) override { find_asleep(a, a.before); }
};

// By the source of its native half: both stacks are of the same moment.
struct ProcessSampler::WithNative : Hold {
  using Hold::Hold;

  // A count read before the turn's first copy of the memory is valid for it (see AsItSleeps).
  std::optional<process::SchedStat> before(const Attempt& a) override {
    copied_before_ = a.number == 0 && (!a.holds || s_.by_event()) && a.slot.first_valid;
    return copied_before_ ? std::optional(a.slot.first) : Hold::before(a);
  }
  Attempted hold(Attempt& a) override {
    using Held = NativeCapture::Held;
    const bool caught = a.number == 0 && a.slot.event.kind == EventState::Kind::preempted;
    Held held = Held::running;
    source_ = native_.hold(tid(a), *a.slot.probe, a.now - a.slot.last_time, caught, registers_, held);
    if (const auto* in = native_.blocked_in()) a.in = *in;
    if (held != Held::later) return attempted(held);
    // Not caught this time. The GIL's holder shows whether this thread has the GIL at all.
    if (a.holds && a.domain.gil.holder_now(s_.memory_) != a.slot.tstate) return Attempted::other_holder;
    a.slot.done = true;
    return Attempted::settled;
  }
  void copy(Attempt& a) override {
    native_.begin_sample();
    stack_ = s_.stack_of(a.slot, registers_.sp);
    // A thread caught by an event has not run since before the turn; the schedule counts around it prove that
    // too.
    if (!copied_before_ || native_.name_of(source_) == NativeSource::ptrace ||
        !s_.snapshot_.is_for(a.slot.index) || s_.snapshot_.sample_number() == s_.last_turns_sample_)
      s_.snapshot_.capture_for(a.slot.index, stack_);
  }
  void copy_native(Attempt& a) override {
    copied_ = native_.copy().take(s_.memory_, registers_, native_.name_of(source_), source_->kernel_frames(),
                                  a.slot.c_stack_end, s_.snapshot_.peek(stack_.address, stack_.size));
  }
  std::optional<process::SchedStat> after(Attempt& a) override {
    // An event caught it on the CPU to which we were pinned.
    const int ours = native_.name_of(source_) == NativeSource::perf ? s_.workers_.current().cpu : -1;
    if (!a.in) a.slot.last_cpu = ours >= 0 ? ours : s_.cpu_of(a.slot);
    if (copied_before_ && native_.event_state(tid(a), 0).stands_since(a.slot.event)) return a.before;
    return Hold::after(a);
  }
  void release() override { source_->let_go(); }
  bool needs_python() const override { return false; }
  Attempted prove(Attempt& a) override {
    a.unproved = !native_.proves(source_) || (a.after.off() && source_->needs_proof());
    return source_->needs_proof() && !unmoved(a.before, a.after) ? Attempted::again : Attempted::go_on;
  }
  void find_state(Attempt& a) override {
    if (copied_) native_.taken();
    a.seen.state.cpu_number = static_cast<int16_t>(a.slot.last_cpu);
    if (a.in) {
      find_asleep(a, a.before);
    } else {
      set_awake(a.seen.state, native_.waited_for_cpu(), held_state(a.after, a.slot.seen));
    }
  }

  static pid_t tid(const Attempt& a) { return a.slot.probe->tid(); }

  NativeHalf& native_ = *s_.native_;
  NativeCapture* source_ = nullptr;
  unwind::Registers registers_;
  ByteRange stack_;
  bool copied_before_ = false, copied_ = false;
};

// ---- which of them

bool ProcessSampler::read_awake(PythonThread& slot, Nanoseconds now, bool holds) {
  if (native_) {
    WithNative hold(*this);
    native_->begin_sample();
    const Attempted next = read_held(slot, now, holds, hold);
    native_->begin_sample();
    // Nothing holds it: read its Python frames alone.
    if (next != Attempted::refused) return next == Attempted::settled;
  }
  if (OnItsCpu hold(*this); goes_to_its_cpu(config_.mode) && hold.reach(slot)) {
    const Attempted next = read_held(slot, now, holds, hold);
    if (next != Attempted::refused) return next == Attempted::settled;
  }
  FromElsewhere hold(*this);
  return read_held(slot, now, holds, hold) == Attempted::settled;
}

void ProcessSampler::read_other(PythonThread& slot, Nanoseconds now) {
  AsItSleeps hold(*this);
  if (read_held(slot, now, false, hold) == Attempted::refused) read_awake(slot, now, false);
}

}  // namespace phlox::sampler
