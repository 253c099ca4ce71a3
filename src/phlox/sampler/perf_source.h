// Holds a running thread by a CPU-clock event of its own: the event's interrupt takes its registers and wakes
// us on its CPU, where we pre-empt it, so that it stands where it was sampled. The ring tells, in order: a
// sample, then "switched out, pre-empted", then nothing. Whether it ran after that the caller proves by its
// schedule count. Nothing is stopped and no right beyond that to look at one's own processes is needed
// (kernel.perf_event_paranoid <= 2). A thread is given an event when it is first seen running, and loses it
// when it has not run for a while.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <span>
#include <unordered_map>

#include "phlox/base/clock.h"
#include "phlox/base/descriptor.h"
#include "phlox/sampler/native_capture.h"
#include "phlox/sampler/perf_records.h"

namespace phlox::sampler {

// What the records of one thread's event say, taken in order. Pure.
class Preempted {
 public:
  // Switched out later than this after the sample, it has run on in between.
  static constexpr Nanoseconds kAtOnce = 50'000;

  void take(const perf::Record& record);
  void forget() { state_ = State::elsewhere; }
  // The thread stands where the sample found it, as far as these records reach.
  bool stands() const { return state_ == State::stands; }
  const unwind::Registers& registers() const { return registers_; }

 private:
  enum class State : uint8_t { elsewhere, sampled, stands };
  State state_ = State::elsewhere;
  Nanoseconds sampled_at_ = 0;
  unwind::Registers registers_;
};

class PerfCapture : public NativeCapture {
 public:
  // `interval`: of CPU time between two samples of a thread.
  PerfCapture(Nanoseconds interval, uint64_t seed);
  ~PerfCapture() override;

  // running: it has no event yet, or was not caught by one. refused: the kernel gives us none.
  Held hold(pid_t tid, target::ThreadProbe& probe, unwind::Registers& registers) override;
  void let_go() override {}
  bool needs_proof() const override { return true; }

  // Sleeps until a thread was sampled or the time has come. False: there is no event to wait for; nothing was
  // done.
  bool wait(Nanoseconds until);
  void set_interval(Nanoseconds interval) { interval_ = interval; }
  size_t events() const { return events_.size(); }

  // How many events there may be at once, out of the descriptors that are left and the memory that may be
  // locked: an event takes one descriptor and kRingBytes + a page. The kernel counts locked memory per user
  // and CPU first (kernel.perf_event_mlock_kb, default 516), then against RLIMIT_MEMLOCK.
  static size_t most_events(uint64_t descriptors, uint64_t mlock_kb, uint64_t cpus, uint64_t memlock_bytes);
  static constexpr size_t kRingBytes = 8192;

 private:
  struct Event {
    Descriptor file;
    void* ring = nullptr;  // the control page, the data behind it
    Preempted state;
    Nanoseconds last_sample = 0;
  };
  bool open(pid_t tid, bool& refused);
  void close(Event& event);
  void drain(Event& event);
  void drop_idle(Nanoseconds now);
  Nanoseconds draw();

  perf::Shape shape_;
  Nanoseconds interval_;
  uint64_t random_;
  bool with_kernel_ = true;  // samples of the kernel's part too: not for everybody
  size_t most_ = 0;
  Nanoseconds next_cleaning_ = 0;
  std::unordered_map<pid_t, Event> events_;
};

}  // namespace phlox::sampler
