#include "phlox/sampler/sampler_thread.h"

#include <fmt/format.h>
#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <csignal>

#include "phlox/sampler/schedule.h"
#include "phlox/sampler/waker.h"

namespace phlox::sampler {
namespace {

// The budget is judged over this much time, so that one odd turn does not lower the rate.
constexpr Nanoseconds kBudgetWindow = kSecond;
// Never slower than this, or the recording says nothing.
constexpr double kLowestRate = 5;
// With no rate asked for: a breath between two turns, so that the target gets on at all.
constexpr Nanoseconds kBreath = 2'000;
// What a wake-up costs the target beyond our own CPU time: the timer interrupt and the way into our thread,
// measured against the throughput of a target that never sleeps (docs/decisions/0001).
constexpr Nanoseconds kWakeUp = 2'500;
constexpr Nanoseconds kPublishEvery = kSecond / 20;
// A turn takes less by far.
constexpr Nanoseconds kStuck = kSecond / 10;
// Linux: sched(7).
constexpr int kHighestPriority = 99;
// Turns between two looks at our own CPU clock, which costs 0.5 us.
constexpr Nanoseconds kMeasureEvery = 8;

std::string describe_python_way(const SamplerThread::Numbers& numbers) {
  switch (numbers.stillness) {
    case Stillness::same_cpu: {
      std::string text = "same CPU (";
      text += describe(numbers.scheduling);
      if (numbers.by_perf > numbers.by_clock) text += ", woken by a perf event";
      text += numbers.schedstat_off ? "; unproved: no schedstat)" : ")";
      return text;
    }
    case Stillness::stop:
      return "ptrace stop";
    case Stillness::hands_off:
      return "hands off (unproved)";
  }
  return "";
}

}  // namespace

SamplerThread::SamplerThread(const ProcessSampler::Config& config, const Options& options,
                             const python::Interpreter& interpreter, memory::RemoteMemory& memory, Ring& ring)
    : config_(config), options_(options), interpreter_(interpreter), memory_(memory), ring_(ring) {
  thread_ = std::thread([this] { run(); });
}

SamplerThread::~SamplerThread() {
  stop();
}

void SamplerThread::stop() {
  stop_.store(true, std::memory_order_relaxed);
  if (!thread_.joinable()) return;
  // It may stand on a CPU that a thread of a higher priority does not leave: from there it never comes back
  // by itself, and may go there once more before it is told to stop.
  cpu_set_t anywhere;
  const bool known = ::sched_getaffinity(0, sizeof anywhere, &anywhere) == 0;
  for (Nanoseconds wait = 0; !over_.load(); wait = kStuck) {
    if (const pid_t tid = tid_.load(); wait > 0 && known && tid != 0)
      ::sched_setaffinity(tid, sizeof anywhere, &anywhere);
    for (const Nanoseconds since = clock_now(); !over_.load() && clock_now() - since < kStuck;)
      sleep_until(clock_now() + kStuck / 100);
  }
  thread_.join();
}

void SamplerThread::stay_above(std::span<const pid_t> threads) {
  const pid_t tid = tid_.load();
  if (tid == 0 || (::sched_getscheduler(tid) & ~SCHED_RESET_ON_FORK) != SCHED_FIFO) return;
  int highest = 0;
  for (const pid_t thread : threads) {
    const int scheduler = ::sched_getscheduler(thread) & ~SCHED_RESET_ON_FORK;
    sched_param parameter{};
    if ((scheduler == SCHED_FIFO || scheduler == SCHED_RR) && ::sched_getparam(thread, &parameter) == 0)
      highest = std::max(highest, parameter.sched_priority);
  }
  if (highest < priority_ || priority_ == kHighestPriority) return;
  sched_param parameter{};
  parameter.sched_priority = std::min(highest + 1, kHighestPriority);
  if (::sched_setscheduler(tid, SCHED_FIFO | SCHED_RESET_ON_FORK, &parameter) == 0)
    priority_ = parameter.sched_priority;
}

SamplerThread::Numbers SamplerThread::numbers() {
  const std::lock_guard lock(mutex_);
  return published_;
}

void SamplerThread::publish(const ProcessSampler& sampler, const Numbers& numbers) {
  // Never waits for a reader: what is not told now is told at the next turn.
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock) return;
  published_ = numbers;
  published_.counts = sampler.counts();
  published_.stillness = sampler.stillness();
  published_.schedstat_off = sampler.schedstat_off();
  published_.native = sampler.native_source();
  published_.events = sampler.native_events();
  published_.process_gone = sampler.process_gone();
}

void SamplerThread::keep_within_budget(Nanoseconds now, Numbers& numbers, Schedule& schedule) {
  if (window_start_ == 0) window_start_ = now;
  const Nanoseconds window = now - window_start_;
  if (window < kBudgetWindow) return;
  const Nanoseconds taken = numbers.target_time - window_taken_;
  window_start_ = now;
  window_taken_ = numbers.target_time;
  if (!options_.max_overhead_percent) return;
  const double percent = 100.0 * static_cast<double>(taken) / static_cast<double>(window);
  double rate = numbers.rate_hz;
  if (percent > *options_.max_overhead_percent) {
    rate = std::max(kLowestRate, rate * *options_.max_overhead_percent / percent * 0.95);
  } else if (options_.rate_hz > 0 && rate < options_.rate_hz &&
             percent < 0.7 * *options_.max_overhead_percent) {
    rate = std::min(options_.rate_hz, rate * 1.25);
  }
  if (std::abs(rate - numbers.rate_hz) > 0.5) {
    numbers.rate_hz = rate;
    schedule.set_interval(static_cast<Nanoseconds>(1e9 / rate));
  }
}

void SamplerThread::run() {
  ::pthread_setname_np(::pthread_self(), "phlox-sampler");
  tid_ = ::gettid();
  sigset_t all;
  sigfillset(&all);
  ::pthread_sigmask(SIG_BLOCK, &all, nullptr);

  Numbers numbers;
  numbers.scheduling = take_best_class();
  // Without a budget and a rate: as fast as it goes. With a budget the fastest start is a guess that the
  // first window corrects.
  const bool unlimited = options_.rate_hz <= 0;
  numbers.rate_hz = unlimited ? (options_.max_overhead_percent ? 1000.0 : 0.0) : options_.rate_hz;
  const Nanoseconds interval =
      numbers.rate_hz > 0 ? static_cast<Nanoseconds>(1e9 / numbers.rate_hz) : kBreath;
  config_.interval = interval;
  config_.real_time = numbers.scheduling == SchedulingClass::real_time;
  ProcessSampler sampler(config_, interpreter_, memory_, ring_);
  Schedule schedule(interval, static_cast<uint64_t>(clock_now(CLOCK_REALTIME)));
  Waker waker;
  Nanoseconds now = clock_now();
  schedule.start(now);
  Nanoseconds published = 0;
  Nanoseconds cpu_before = clock_now(CLOCK_THREAD_CPUTIME_ID);
  Nanoseconds since_measured = 0;
  const Nanoseconds cpu_start = cpu_before;
  while (!stop_.load(std::memory_order_relaxed)) {
    sampler.turn(now);
    if (++since_measured == kMeasureEvery) {
      const Nanoseconds cpu = clock_now(CLOCK_THREAD_CPUTIME_ID);
      numbers.target_time += cpu - cpu_before + kMeasureEvery * kWakeUp;
      numbers.cpu = cpu - cpu_start;
      cpu_before = cpu;
      since_measured = 0;
    }
    now = clock_now();
    keep_within_budget(now, numbers, schedule);
    numbers.ticks_missed = numbers.rate_hz > 0 ? schedule.missed() : 0;
    if (now - published > kPublishEvery) {
      published = now;
      publish(sampler, numbers);
    }
    if (sampler.process_gone()) break;
    if (numbers.rate_hz > 0 && config_.native && sampler.wait_for_event(schedule.interval())) {
      now = clock_now();
      schedule.start(now);
    } else if (numbers.rate_hz > 0) {
      now = waker.wait(schedule, now, sampler.cpu());
      numbers.by_perf = waker.by_perf();
      numbers.by_clock = waker.by_clock();
    } else {
      sleep_until(now + kBreath);
      now = clock_now();
    }
  }
  sampler.finish(clock_now());
  over_ = true;
  const Nanoseconds cpu_end = clock_now(CLOCK_THREAD_CPUTIME_ID);
  numbers.target_time += cpu_end - cpu_before + since_measured * kWakeUp;
  numbers.cpu = cpu_end - cpu_start;
  const std::lock_guard lock(mutex_);
  published_ = numbers;
  published_.counts = sampler.counts();
  published_.stillness = sampler.stillness();
  published_.schedstat_off = sampler.schedstat_off();
  published_.native = sampler.native_source();
  published_.events = sampler.native_events();
  published_.process_gone = sampler.process_gone();
}

std::string describe_way(const SamplerThread::Numbers& numbers) {
  const std::string way = describe_python_way(numbers);
  if (!numbers.native) return way;
  switch (*numbers.native) {
    case NativeSource::ptrace:
      return "ptrace stop of running threads, with native frames";
    case NativeSource::perf:
      return way + ", native frames by perf events" + (numbers.events.kernel ? ", the kernel's too" : "");
    default:
      return way + ", native frames of blocked threads only";
  }
}

std::vector<std::string> details_of(const SamplerThread::Numbers& numbers) {
  std::vector<std::string> lines;
  if (numbers.native != NativeSource::perf) {
    if (numbers.native) lines.push_back("no kernel frames: only perf events tell them");
    return lines;
  }
  if (!numbers.events.kernel) {
    lines.push_back(
        "no kernel frames: perf events of the kernel are refused (CAP_PERFMON, or kernel.perf_event_paranoid "
        "of 1 or less, would grant them)");
  }
  if (numbers.events.without > 0) {
    lines.push_back(
        fmt::format("up to {} running threads were without a perf event: there may be {} at once "
                    "(descriptors, locked memory); they took turns",
                    numbers.events.without, numbers.events.most));
  }
  return lines;
}

}  // namespace phlox::sampler
