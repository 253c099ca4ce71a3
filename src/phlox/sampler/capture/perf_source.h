// Holds a running thread by its own CPU-clock event: the event's interrupt takes its registers and wakes us
// on its CPU, where we pre-empt it, so it stays where it was sampled. The ring has, in order: a sample, then
// "switched out, pre-empted", then nothing. The caller proves by the schedule count whether it ran after
// that. Nothing is stopped, and no right is needed beyond reading one's own processes
// (kernel.perf_event_paranoid <= 2). A thread gets an event when a sample first finds it running, and loses
// it when it has not run for a while (event_budget.h). With the right to see the kernel (CAP_PERFMON, or
// kernel.perf_event_paranoid <= 1) the event has the kernel's frames too. Called by the worker that holds the
// turn lock; wait() sleeps without it and holds it again when it returns.
#pragma once

#include <sys/types.h>

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "phlox/base/clock.h"
#include "phlox/base/descriptor.h"
#include "phlox/perf/records.h"
#include "phlox/process/host_rights.h"
#include "phlox/sampler/capture/event_budget.h"
#include "phlox/sampler/capture/native_capture.h"
#include "phlox/sampler/capture/schedule.h"
#include "phlox/sampler/capture/workers.h"
#include "phlox/sampler/observe/counts.h"

namespace phlox::sampler {

// The records of one thread's event, in order. Pure.
class Preempted {
 public:
  // If it was switched out later than this after the sample, it has run in between.
  static constexpr Nanoseconds kAtOnce = 50'000;

  void take(const perf::Record& record);
  void forget() { state_ = State::unknown; }
  // The thread is where the sample found it, by these records.
  bool stands() const { return state_ == State::stands; }
  const unwind::Registers& registers() const { return registers_; }
  std::span<const uint64_t> kernel_frames() const { return std::span(kernel_).first(kernel_frames_); }
  Nanoseconds sampled_at() const { return sampled_at_; }
  // Its CPU in the last record; -1: no record yet.
  int cpu() const { return cpu_; }
  // Its state at that time. awake: it runs or could; asleep: it has not run since, though it may have been
  // woken.
  enum class Doing : uint8_t { unknown, awake, asleep };
  Doing doing() const {
    return state_ == State::unknown ? Doing::unknown : state_ == State::asleep ? Doing::asleep : Doing::awake;
  }

 private:
  // The last two are awake, too.
  enum class State : uint8_t { unknown, asleep, awake, sampled, stands };
  State state_ = State::unknown;
  Nanoseconds sampled_at_ = 0;
  unwind::Registers registers_;
  int cpu_ = -1;
  size_t kernel_frames_ = 0;
  std::array<uint64_t, kMostKernelFrames> kernel_;
};

// The state of a thread at the last record of its event, known without a system call.
struct EventState {
  enum class Kind : uint8_t {
    unknown,    // it has no event, or the records do not say
    preempted,  // it is where its sample woke us: hold() has it
    awake,      // it runs or waits for a CPU, and its sample has not woken us
    asleep,     // it has not run since `last`
  };
  Kind kind = Kind::unknown;
  // The number of its last record, among those of all events; never repeated. 0: none.
  uint64_t last = 0;
  RemoteAddress sp;  // preempted
  // `mark`: `last` in an earlier sample that found it blocked.
  bool asleep_since(uint64_t mark) const { return kind == Kind::asleep && last == mark; }
  // It has not run since.
  bool stands_since(const EventState& before) const {
    return kind == Kind::preempted && before.kind == Kind::preempted && last == before.last;
  }
};

// by_event: a thread is caught. by_time: none is, or the worker was woken. nothing_to_wait_for: at once.
enum class Woken : uint8_t { by_event, by_time, nothing_to_wait_for };

class PerfCapture : public NativeCapture {
 public:
  // `interval`: of CPU time between two samples of a thread.
  PerfCapture(Nanoseconds interval, uint64_t seed, Workers& workers);
  ~PerfCapture() override;

  // running: it has no event yet, or none caught it. refused: the kernel gives us none. Any number of calls
  // until the next wait().
  Held hold(pid_t tid, process::ThreadProbe& probe, unwind::Registers& registers) override;
  void let_go() override { held_ = nullptr; }
  // The present state.
  EventState event_state(pid_t tid);
  // The CPU of its last record; -1: not known.
  int cpu_of(pid_t tid) const;
  bool needs_proof() const override { return true; }
  std::span<const uint64_t> kernel_frames() const override {
    return held_ != nullptr ? held_->state.kernel_frames() : std::span<const uint64_t>();
  }

  // Sleeps, without the turn lock, until a thread of this worker's CPU is where it was sampled, the time has
  // come, or the worker is woken. Threads on other CPUs run on: they could not be read from here. A worker
  // for events only waits even if there is no event yet.
  Woken wait(Worker& worker, Nanoseconds until, TurnLock& turn_lock);
  void set_interval(Nanoseconds interval) { schedule_.set_interval(interval); }
  // A random interval.
  Nanoseconds draw() { return schedule_.draw(); }
  const EventNumbers& numbers() const { return numbers_; }
  // Why the last Held::refused was refused.
  const process::EventRefusal& refusal() const { return refusal_; }

 private:
  struct Event {
    Descriptor file;
    void* ring = nullptr;  // the control page, then the data
    perf::Shape shape;
    Preempted state;
    uint64_t last = 0;  // EventState::last
    int samples = 0;    // with the same period
    // The worker that waits for it, and the number of its list.
    const Worker* waited_by = nullptr;
    uint64_t list = 0;
  };
  // How much of the kernel an event may see.
  enum class Depth : uint8_t { user, kernel, kernel_frames };
  bool open(pid_t tid, bool& refused);
  void close(pid_t tid);
  void drain(pid_t tid, Event& event);
  void drop_idle(Nanoseconds now);
  bool woke_us(const Event& event) const;

  Schedule schedule_;
  Workers& workers_;
  Depth depth_ = Depth::kernel_frames;  // the most that was not refused
  uint16_t deepest_chain_;
  Nanoseconds next_cleaning_ = 0;
  EventBudget budget_;
  EventNumbers numbers_;
  process::EventRefusal refusal_;
  std::unordered_map<pid_t, Event> events_;
  const Event* held_ = nullptr;
  uint64_t records_ = 0;  // of all events, as far as they were read
};

}  // namespace phlox::sampler
