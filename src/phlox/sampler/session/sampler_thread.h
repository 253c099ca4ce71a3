// The first worker, which starts and ends the others (workers.h): their threads and scheduling class, and how
// they wait. turn_loop.h says when they take turns. Owned by the Recorder, whose thread calls the public
// functions: numbers() passes values across, and everything else leaves through the ring.
#pragma once

#include <array>
#include <atomic>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "phlox/base/clock.h"
#include "phlox/memory/remote_memory.h"
#include "phlox/sampler/capture/process_sampler.h"
#include "phlox/sampler/observe/ring.h"
#include "phlox/sampler/observe/sample_source.h"
#include "phlox/sampler/session/host.h"
#include "phlox/sampler/session/idle_watch.h"
#include "phlox/sampler/session/recorder.h"
#include "phlox/sampler/session/scheduling.h"
#include "phlox/sampler/session/shared_timer.h"

namespace phlox::sampler {

class SamplerThread : public SampleSource {
 public:
  using Numbers = SourceNumbers;

  // Shared by those of one recorder; null: not used.
  struct SharedTimers {
    IdleWatch* watch = nullptr;    // rests there while nothing runs in the process
    SharedTimer* timer = nullptr;  // wakes up together with its others
  };
  SamplerThread(Host& host, const ProcessSampler::Config& config, const Options& options,
                const python::Interpreter& interpreter, memory::RemoteMemory& memory, Ring& ring,
                const SharedTimers& timers);
  ~SamplerThread() override;  // stops

  void stop() override;
  Numbers numbers() override;
  uint64_t published() const override { return version_.load(std::memory_order_acquire); }

  // On its CPU a real-time thread runs as long as it likes, and the sampler only gets that CPU with a higher
  // priority: sets it, if allowed.
  void stay_above(std::span<const pid_t> threads) override;
  void with_traces(const process::ThreadVariable& variable) override;

 private:
  class Crew;
  Numbers prepare();
  void run();
  void publish(const ProcessSampler& sampler, const Numbers& numbers);

  Host& host_;
  ProcessSampler::Config config_;
  Options options_;
  const python::Interpreter& interpreter_;
  memory::RemoteMemory& memory_;
  Ring& ring_;
  SharedTimers timers_;
  std::atomic<bool> stop_{false};
  std::atomic<uint64_t> version_{0};
  std::mutex mutex_;
  Numbers published_;
  // One moves with the target; on most machines several need not.
  static constexpr size_t kMostWorkers = 4;
  std::atomic<bool> over_{false};
  process::ThreadVariable variable_;
  TraceReader::Variable traces_{nullptr};                // `variable_`, once it is known
  std::array<std::atomic<pid_t>, kMostWorkers> tids_{};  // 0: not running
  int priority_ = 1;                                     // in the real-time class
  std::thread thread_;
};

// The mode, as outputs name it: "same CPU (real time)", "ptrace stop", "hands off (unproved)", "in the kernel
// (BPF)".
std::string describe_mode(const SamplerThread::Numbers& numbers);

// Further facts about its native frames, for --verbose.
std::vector<std::string> details_of(const SamplerThread::Numbers& numbers);

}  // namespace phlox::sampler
