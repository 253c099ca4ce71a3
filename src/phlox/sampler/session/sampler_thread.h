// The first worker, which starts and ends the others (workers.h): schedule, scheduling class, turns, and the
// measure of what they take from the target. Owned by the Recorder, whose thread calls what is public here:
// what is asked crosses over by numbers(), and everything else leaves through the ring.
#pragma once

#include <array>
#include <atomic>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "phlox/base/clock.h"
#include "phlox/memory/remote_memory.h"
#include "phlox/sampler/capture/process_sampler.h"
#include "phlox/sampler/capture/ring.h"
#include "phlox/sampler/session/beat.h"
#include "phlox/sampler/session/budget.h"
#include "phlox/sampler/session/idle_watch.h"
#include "phlox/sampler/session/recorder.h"
#include "phlox/sampler/session/scheduling.h"
#include "phlox/sampler/session/source.h"

namespace phlox::sampler {

class SamplerThread : public Source {
 public:
  using Numbers = SourceNumbers;

  // What those of one recorder share; null: it does without.
  struct Together {
    IdleWatch* watch = nullptr;  // where it rests while nothing runs in the process
    Beat* beat = nullptr;        // whom it wakes with
  };
  SamplerThread(const ProcessSampler::Config& config, const Options& options,
                const python::Interpreter& interpreter, memory::RemoteMemory& memory, Ring& ring,
                const Together& together);
  ~SamplerThread() override;  // stops

  void stop() override;
  Numbers numbers() override;
  uint64_t published() const override { return version_.load(std::memory_order_acquire); }

  // On its CPU a thread of a real-time class runs as long as it likes, and the sampler beside it only when it
  // is of a higher priority: makes it so, where it may.
  void stay_above(std::span<const pid_t> threads) override;

 private:
  // What the workers share. Who holds the turn lock may use it.
  struct Shared {
    ProcessSampler& sampler;
    Workers& workers;
    class Schedule& schedule;
    Numbers numbers;
    TurnLock turn_lock;
    Nanoseconds published = 0;
    Nanoseconds stood = 0;         // of the stops, as measured
    Nanoseconds events_apart = 0;  // at least: what comes while the program has its time is for nothing
    bool over = false;
  };
  // What a worker takes from the program.
  struct Cost {
    Nanoseconds before = 0;  // its CPU time when it was measured
    Nanoseconds turns = 0;   // since then
    Nanoseconds owed = 0;    // the program's time, before its next turn
  };

  // How long the process has not run, as its clock was asked before each turn.
  struct Stillness {
    target::ProcessClock clock;
    std::optional<Nanoseconds> used;
    Nanoseconds since = 0;
    void ask(Nanoseconds now);
  };

  void run();
  Nanoseconds rest(Shared& shared, const Stillness& still);
  void start_others(Shared& shared, const std::vector<int>& cpus, std::vector<std::thread>& others);
  // Holding the turn lock, which is released and taken again.
  void end_others(Shared& shared, std::vector<std::thread>& others);
  void run_on_events(Shared& shared, int cpu, size_t index);
  void take_turn(Shared& shared, Nanoseconds now, Cost& cost);
  Nanoseconds measure(Shared& shared, Cost& cost);
  void leave_its_half(Shared& shared, Cost& cost);
  void publish_now_and_then(Shared& shared, Nanoseconds now);

  ProcessSampler::Config config_;
  Options options_;
  Budget budget_;
  const python::Interpreter& interpreter_;
  memory::RemoteMemory& memory_;
  Ring& ring_;
  Together together_;
  std::atomic<bool> stop_{false};
  std::atomic<uint64_t> version_{0};
  std::mutex mutex_;
  Numbers published_;
  // One goes with the target wherever it is; several need not, on most machines.
  static constexpr size_t kMostWorkers = 4;
  std::atomic<bool> over_{false};
  std::array<std::atomic<pid_t>, kMostWorkers> tids_{};  // 0: not running
  int priority_ = 1;                                     // in the real-time class
  std::thread thread_;
};

// What the way of reading is called in outputs: "same CPU (real time)", "ptrace stop", "hands off
// (unproved)", "in the kernel (BPF)".
std::string describe_way(const SamplerThread::Numbers& numbers);

// What there is to know of its native frames beyond that, for --verbose.
std::vector<std::string> details_of(const SamplerThread::Numbers& numbers);

}  // namespace phlox::sampler
