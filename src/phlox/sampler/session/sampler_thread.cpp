#include "phlox/sampler/session/sampler_thread.h"

#include <fmt/format.h>
#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <csignal>
#include <system_error>
#include <utility>

#include "phlox/process/cpu_list.h"
#include "phlox/process/cpu_set.h"
#include "phlox/sampler/capture/sample_timer.h"
#include "phlox/sampler/capture/schedule.h"

namespace phlox::sampler {
namespace {

// Without a rate and a budget there is no interval, and every turn is longer than this; the time of a turn
// decides how many there are (leave_its_half). Native frames come by events, which have a rate.
constexpr Nanoseconds kNoInterval = 2'000;
constexpr double kFastestNative = 5'000;
// What a wake-up costs the target besides our own CPU time: the timer interrupt and the switch to our thread,
// measured against the throughput of a target that never sleeps (docs/decisions/0001).
constexpr Nanoseconds kWakeUp = 2'500;
// No option overrides this: after a turn, the program has its CPU for as long as the turn took, plus what it
// loses by cold caches and by arming a timer in a virtual machine (sample_timer.h).
constexpr Nanoseconds kColdStart = 15'000;
constexpr Nanoseconds kPublishEvery = kSecond / 20;
// A turn takes far less.
constexpr Nanoseconds kStuck = kSecond / 10;
// Linux: sched(7).
constexpr int kHighestPriority = 99;
// Turns between two readings of our own CPU clock, which take 0.5 us each.
constexpr Nanoseconds kMeasureEvery = 8;

// Wakes the first worker: together with those of other processes on its CPU, or by a timer of its own.
class Wakings {
 public:
  explicit Wakings(SharedTimer* timer) {
    if (timer == nullptr) return;
    slot_.emplace(*timer);
    timer_interval_ = timer->interval();
  }

  void wait(Schedule& schedule, Nanoseconds now, int cpu) {
    if (!slot_ || cpu < 0 || schedule.interval() != timer_interval_) {
      leave_others();
      alone_.wait(schedule, now, cpu);
      return;
    }
    const SharedTimer::Woken woken = slot_->wait(cpu);
    schedule.start(woken.at);
    schedule.missed_more(woken.missed);
    ++(woken.by_perf ? by_perf_ : by_clock_);
  }
  // The worker moves to another CPU, or rests.
  void leave_others() {
    if (slot_) slot_->leave();
  }
  uint64_t by_perf() const { return by_perf_ + alone_.by_perf(); }
  uint64_t by_clock() const { return by_clock_ + alone_.by_clock(); }

 private:
  std::optional<SharedTimer::Slot> slot_;
  Nanoseconds timer_interval_ = 0;
  SampleTimer alone_;
  uint64_t by_perf_ = 0, by_clock_ = 0;
};

void prepare_thread(std::atomic<pid_t>& tid) {
  ::pthread_setname_np(::pthread_self(), "phlox-sampler");
  tid = ::gettid();
  sigset_t all;
  sigfillset(&all);
  ::pthread_sigmask(SIG_BLOCK, &all, nullptr);
}

// Without a budget and a rate: as fast as possible (0). With a budget, a guess that the first window
// corrects.
double first_rate(const Options& options, bool native) {
  if (options.rate_hz > 0) return options.rate_hz;
  if (options.max_overhead_percent) return 1000.0;
  return native ? kFastestNative : 0.0;
}

void copy_numbers(const ProcessSampler& sampler, const SamplerThread::Numbers& from,
                  SamplerThread::Numbers& into) {
  into = from;
  into.counts = sampler.counts();
  into.mode = sampler.mode();
  into.schedstat_off = sampler.schedstat_off();
  into.native = sampler.native_source();
  into.events = sampler.native_events();
  into.process_gone = sampler.process_gone();
  into.stateless = sampler.stateless();
}

std::string describe_same_cpu(const SamplerThread::Numbers& numbers) {
  std::string text = "same CPU (";
  text += describe(numbers.scheduling);
  if (numbers.by_perf > numbers.by_clock) text += ", woken by a perf event";
  text += numbers.schedstat_off ? "; unproved: no schedstat)" : ")";
  return text;
}

std::string describe_python_mode(const SamplerThread::Numbers& numbers) {
  const Counts& counts = numbers.counts;
  // If all stops were refused, they are not mentioned.
  const bool stops = counts.stopped_alone > 0 || counts.stop_refused == 0;
  switch (numbers.mode) {
    case Mode::ptrace:
      if (stops) return "ptrace stop";
      break;
    case Mode::hands_off:
      break;
    case Mode::kernel:
      return std::string(profile::kInTheKernel);
    case Mode::automatic:
    case Mode::no_kernel:
    case Mode::same_cpu: {
      if (counts.cpu_refused == 0) return describe_same_cpu(numbers);
      const std::string otherwise =
          numbers.mode != Mode::same_cpu && stops ? "ptrace stop" : "hands off (unproved)";
      // It has run on none of the program's CPUs.
      if (counts.migrations == 0) return otherwise + " (the program's CPUs are refused)";
      return describe_same_cpu(numbers) + ", " + otherwise + " where that CPU is refused";
    }
  }
  return "hands off (unproved)";
}

}  // namespace

SamplerThread::SamplerThread(Host& host, const ProcessSampler::Config& config, const Options& options,
                             const python::Interpreter& interpreter, memory::RemoteMemory& memory, Ring& ring,
                             const SharedTimers& timers)
    : host_(host),
      config_(config),
      options_(options),
      budget_(options.max_overhead_percent, options.rate_hz),
      interpreter_(interpreter),
      memory_(memory),
      ring_(ring),
      timers_(timers) {
  thread_ = std::thread([this] { run(); });
}

SamplerThread::~SamplerThread() {
  stop();
}

void SamplerThread::stop() {
  stop_.store(true);
  if (!thread_.joinable()) return;
  if (timers_.watch != nullptr) timers_.watch->wake();
  // It may be on a CPU that a thread of a higher priority does not leave: it never comes back from there by
  // itself, and may go there again before it sees that it has to stop.
  const auto anywhere = process::CpuSet::read(0);
  for (Nanoseconds wait = 0; !over_.load(); wait = kStuck) {
    for (const auto& worker : tids_) {
      if (const pid_t tid = worker.load(); wait > 0 && anywhere && tid != 0) anywhere->move(tid);
    }
    for (const Nanoseconds since = host_.now(); !over_.load() && host_.now() - since < kStuck;)
      host_.sleep_until(host_.now() + kStuck / 100);
  }
  thread_.join();
}

void SamplerThread::stay_above(std::span<const pid_t> threads) {
  const pid_t tid = tids_.front().load();
  if (tid == 0 || (::sched_getscheduler(tid) & ~SCHED_RESET_ON_FORK) != SCHED_FIFO) return;
  int highest = 0;
  for (const pid_t thread : threads) {
    const int scheduler = ::sched_getscheduler(thread) & ~SCHED_RESET_ON_FORK;
    sched_param parameter{};
    if ((scheduler == SCHED_FIFO || scheduler == SCHED_RR) && ::sched_getparam(thread, &parameter) == 0)
      highest = std::max(highest, parameter.sched_priority);
  }
  if (highest >= priority_) priority_ = std::min(highest + 1, kHighestPriority);
  for (const auto& worker : tids_) {
    sched_param parameter{};
    const pid_t one = worker.load();
    if (one == 0 || ::sched_getparam(one, &parameter) != 0 || parameter.sched_priority == priority_) continue;
    parameter.sched_priority = priority_;
    ::sched_setscheduler(one, SCHED_FIFO | SCHED_RESET_ON_FORK, &parameter);
  }
}

SamplerThread::Numbers SamplerThread::numbers() {
  const std::lock_guard lock(mutex_);
  return published_;
}

void SamplerThread::publish_now_and_then(Shared& shared, Nanoseconds now) {
  if (now - shared.published <= kPublishEvery) return;
  shared.published = now;
  // Never waits for a reader: what is not published now is published next time.
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock) return;
  copy_numbers(shared.sampler, shared.numbers, published_);
  version_.fetch_add(1, std::memory_order_release);
}

// Since the last measurement.
Nanoseconds SamplerThread::measure(Shared& shared, Cost& cost) {
  const Nanoseconds cpu = host_.read_clock(CLOCK_THREAD_CPUTIME_ID);
  const Nanoseconds stood = shared.sampler.counts().stood;
  const Nanoseconds taken =
      cpu - cost.before + cost.turns * kWakeUp + stood - std::exchange(shared.stood, stood);
  shared.numbers.target_time += taken;
  shared.numbers.cpu += cpu - cost.before;
  cost.before = cpu;
  cost.turns = 0;
  return taken;
}

// Holding the turn lock, which is released and taken again.
void SamplerThread::leave_its_half(Shared& shared, Cost& cost) {
  if (cost.owed == 0) return;
  const bool is_long = cost.owed > shared.schedule.interval();
  const Nanoseconds until = host_.now() + std::exchange(cost.owed, 0);
  ++shared.numbers.rests;
  shared.turn_lock.unlock();
  host_.sleep_until(until);
  shared.turn_lock.lock();
  // Samples for which the budget has no room do not count as missed.
  if (is_long) shared.schedule.start(until);
}

void SamplerThread::take_turn(Shared& shared, Nanoseconds now, Cost& cost) {
  Numbers& numbers = shared.numbers;
  shared.sampler.turn(now, shared.workers.begin_turn());
  const Nanoseconds woken = std::exchange(now, host_.now());
  // After shorter turns, the schedule leaves the program more than that.
  const bool is_long = 2 * (now - woken + kColdStart) > shared.schedule.interval();
  if (++cost.turns == kMeasureEvery || is_long) {
    const Nanoseconds taken = measure(shared, cost);
    if (is_long) cost.owed = taken + kColdStart;
    shared.events_apart = std::max(2 * cost.owed, shared.events_apart / 8 * 7);
    cost.owed = std::max(cost.owed, budget_.rest(now, numbers.target_time));
  }
  if (const auto rate = budget_.judge(now, numbers.target_time, numbers.rate_hz)) {
    numbers.rate_hz = *rate;
    shared.schedule.set_interval(static_cast<Nanoseconds>(1e9 / *rate));
  }
  numbers.ticks_missed = numbers.rate_hz > 0 ? shared.schedule.missed() : 0;
  publish_now_and_then(shared, now);
}

void SamplerThread::Stillness::note(bool ran, Nanoseconds now) {
  if (ran) {
    used.reset();
    return;
  }
  const auto before = std::exchange(used, clock.used());
  if (!used || used != before) since = now;
}

// While nothing runs in the process. Holding the turn lock, which is released and taken again. Returns the
// time.
Nanoseconds SamplerThread::rest(Shared& shared, const Stillness& still) {
  for (bool ran = false; !ran && !stop_.load();) {
    shared.turn_lock.unlock();
    const auto rest = timers_.watch->rest(still.clock, *still.used, shared.schedule.interval(), stop_);
    shared.turn_lock.lock();
    ran = rest.ran;
    if (rest.checks == 0) continue;
    shared.sampler.stood_still(rest.still_at, shared.workers.skip_rounds(rest.checks));
    publish_now_and_then(shared, rest.still_at);
  }
  const Nanoseconds now = host_.now();
  shared.schedule.start(now);
  return now;
}

// A worker on a CPU of its own samples only when an event has caught a thread there.
void SamplerThread::run_on_events(Shared& shared, int cpu, size_t index) {
  prepare_thread(tids_[index]);
  if (take_best_class() == SchedulingClass::real_time && shared.workers.pin(0, cpu)) {
    Cost cost{host_.read_clock(CLOCK_THREAD_CPUTIME_ID), 0, 0};
    shared.turn_lock.lock();
    Worker& worker = shared.workers.add(cpu);
    worker.tid = ::gettid();
    while (!shared.over) {
      leave_its_half(shared, cost);
      if (shared.over) break;
      const Woken woken = shared.sampler.wait_for_event(
          worker, std::max(shared.schedule.interval(), shared.events_apart), shared.turn_lock);
      if (woken == Woken::nothing_to_wait_for) break;  // events are refused by now
      if (woken == Woken::by_event && !shared.over) {
        const Nanoseconds now = host_.now();
        shared.schedule.start(now);
        shared.workers.act_as(worker);
        take_turn(shared, now, cost);
      }
    }
    measure(shared, cost);
    shared.turn_lock.unlock();
  }
  tids_[index] = 0;
}

// Starts one for each further CPU, once there are events. Fewer if no more threads are granted: the others
// move from CPU to CPU.
void SamplerThread::start_others(Shared& shared, const std::vector<int>& cpus,
                                 std::vector<std::thread>& others) {
  if (cpus.size() < 2) return;
  shared.workers.follow(cpus.front());
  try {
    for (size_t index = 1; index < std::min(cpus.size(), kMostWorkers); ++index)
      others.emplace_back([this, &shared, index, cpu = cpus[index]] { run_on_events(shared, cpu, index); });
  } catch (const std::system_error&) {
  }
}

void SamplerThread::end_others(Shared& shared, std::vector<std::thread>& others) {
  shared.over = true;
  shared.workers.wake_all();
  shared.turn_lock.unlock();
  for (auto& other : others) other.join();
  others.clear();
  shared.turn_lock.lock();
}

// Its thread, its class and the first rate.
SamplerThread::Numbers SamplerThread::prepare() {
  prepare_thread(tids_.front());
  Numbers numbers;
  numbers.scheduling = take_best_class();
  numbers.rate_hz = first_rate(options_, config_.native.has_value());
  config_.interval = numbers.rate_hz > 0 ? static_cast<Nanoseconds>(1e9 / numbers.rate_hz) : kNoInterval;
  config_.longest_stack = Budget::longest_sample(options_.max_overhead_percent);
  config_.real_time = numbers.scheduling == SchedulingClass::real_time;
  return numbers;
}

void SamplerThread::run() {
  const Numbers numbers = prepare();
  Workers workers(options_.isolated_cpus ? std::vector<int>() : process::read_kept_free_cpus());
  ProcessSampler sampler(config_, interpreter_, memory_, ring_, workers);
  Schedule schedule(config_.interval, static_cast<uint64_t>(host_.read_clock(CLOCK_REALTIME)));
  Shared shared{.sampler = sampler, .workers = workers, .schedule = schedule, .numbers = numbers};
  Worker& worker = workers.first();
  std::vector<int> cpus = workers.common_cpus(config_.pid);
  std::vector<std::thread> others;
  Wakings wakings(config_.real_time && !config_.native ? timers_.timer : nullptr);
  Nanoseconds now = host_.now();
  schedule.start(now);
  Cost cost{host_.read_clock(CLOCK_THREAD_CPUTIME_ID), 0, 0};
  Stillness still{process::ProcessClock(config_.pid), {}, 0};
  const bool may_rest = timers_.watch != nullptr && numbers.rate_hz > 0 && !config_.native;
  bool due = true;
  shared.turn_lock.lock();
  while (!stop_.load(std::memory_order_relaxed)) {
    workers.act_as(worker);
    if (may_rest) still.note(sampler.any_ran(), now);
    if (due) take_turn(shared, now, cost);
    if (sampler.process_gone()) break;
    leave_its_half(shared, cost);
    if (may_rest && still.used && still.since < now && sampler.all_blocked_since(still.since)) {
      wakings.leave_others();
      now = rest(shared, still);
      continue;
    }
    const double rate = shared.numbers.rate_hz;
    const Woken woken =
        rate > 0 && config_.native
            ? sampler.wait_for_event(worker, std::max(schedule.interval(), shared.events_apart),
                                     shared.turn_lock)
            : Woken::nothing_to_wait_for;
    now = host_.now();
    due = true;
    if (woken != Woken::nothing_to_wait_for) {
      // If no thread is caught: once an interval, whichever worker's turn it was.
      due = woken == Woken::by_event || sampler.rested(now) > schedule.interval() / 2;
      if (woken == Woken::by_time) workers.end_round(worker);
      schedule.start(now);
      if (config_.real_time && others.empty()) start_others(shared, std::exchange(cpus, {}), others);
      continue;
    }
    if (!others.empty() && sampler.native_source() != NativeSource::perf) end_others(shared, others);
    shared.turn_lock.unlock();
    // Without a rate, the rest after each turn is the only pause.
    if (rate > 0) wakings.wait(schedule, now, worker.cpu);
    shared.turn_lock.lock();
    now = host_.now();
    shared.numbers.by_perf = wakings.by_perf();
    shared.numbers.by_clock = wakings.by_clock();
  }
  end_others(shared, others);
  workers.act_as(worker);
  finish(shared, cost);
}

void SamplerThread::finish(Shared& shared, Cost& cost) {
  shared.sampler.finish(host_.now());
  over_ = true;
  measure(shared, cost);
  const std::lock_guard lock(mutex_);
  copy_numbers(shared.sampler, shared.numbers, published_);
  version_.fetch_add(1, std::memory_order_release);
}

std::string describe_mode(const SamplerThread::Numbers& numbers) {
  const std::string mode = describe_python_mode(numbers);
  if (!numbers.native) return mode;
  switch (*numbers.native) {
    case NativeSource::ptrace:
      return "ptrace stop of running threads, with native frames";
    case NativeSource::perf:
      return mode + ", native frames by perf events" + (numbers.events.kernel ? ", the kernel's too" : "");
    case NativeSource::kernel:
      return mode + ", with native frames, the kernel's too";
    default:
      return mode + ", native frames of blocked threads only";
  }
}

std::vector<std::string> details_of(const SamplerThread::Numbers& numbers) {
  std::vector<std::string> lines;
  if (numbers.native == NativeSource::kernel) return lines;
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
