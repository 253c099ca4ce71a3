#include "phlox/sampler/session/sampler_thread.h"

#include <fmt/format.h>
#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <optional>
#include <system_error>
#include <utility>

#include "phlox/process/cpu_list.h"
#include "phlox/process/cpu_set.h"
#include "phlox/sampler/capture/schedule.h"
#include "phlox/sampler/observe/plan.h"
#include "phlox/sampler/session/budget.h"
#include "phlox/sampler/session/turn_loop.h"
#include "phlox/sampler/session/worker_waits.h"

namespace phlox::sampler {
namespace {

// Without a rate and a budget there is no interval, and every turn is longer than this; the time of a turn
// decides how many there are (turn_loop.h). Native frames come by events, which have a rate.
constexpr Nanoseconds kNoInterval = 2'000;
constexpr double kFastestNative = 5'000;
// A turn takes far less.
constexpr Nanoseconds kStuck = kSecond / 10;
// Linux: sched(7).
constexpr int kHighestPriority = 99;

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

}  // namespace

SamplerThread::SamplerThread(Host& host, const ProcessSampler::Config& config, const Options& options,
                             const python::Interpreter& interpreter, memory::RemoteMemory& memory, Ring& ring,
                             const SharedTimers& timers)
    : host_(host),
      config_(config),
      options_(options),
      interpreter_(interpreter),
      memory_(memory),
      ring_(ring),
      timers_(timers) {
  config_.traces = &traces_;
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

// Once: it stays where it is.
void SamplerThread::with_traces(const process::ThreadVariable& variable) {
  if (traces_.load() != nullptr) return;
  variable_ = variable;
  traces_.store(&variable_, std::memory_order_release);
}

SamplerThread::Numbers SamplerThread::numbers() {
  const std::lock_guard lock(mutex_);
  return published_;
}

// Never waits for a reader: what is not published now is published next time.
void SamplerThread::publish(const ProcessSampler& sampler, const Numbers& numbers) {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock) return;
  copy_numbers(sampler, numbers, published_);
  version_.fetch_add(1, std::memory_order_release);
}

// What the workers share. Made and ended by the first.
class SamplerThread::Crew {
 public:
  Crew(SamplerThread& owner, const Numbers& numbers)
      : owner_(owner),
        workers_(owner.options_.isolated_cpus ? std::vector<int>() : process::read_kept_free_cpus()),
        sampler_(owner.config_, owner.interpreter_, owner.memory_, owner.ring_, workers_),
        loop_(owner.host_, Budget(owner.options_.max_overhead_percent, owner.options_.rate_hz),
              Schedule(owner.config_.interval, static_cast<uint64_t>(owner.host_.read_clock(CLOCK_REALTIME))),
              numbers, [this](const Numbers& now) { owner_.publish(sampler_, now); }),
        cpus_(workers_.common_cpus(owner.config_.pid)) {}

  void run();

 private:
  class Turns;
  class FirstEventWait;
  void run_on_events(int cpu, std::atomic<pid_t>& tid);
  void start_others();
  void end_others();

  SamplerThread& owner_;
  Workers workers_;
  ProcessSampler sampler_;
  TurnLoop loop_;
  std::vector<int> cpus_;  // empty: the others were started
  std::vector<std::thread> others_;
  std::atomic<bool> others_are_over_{false};
};

// Of one worker.
class SamplerThread::Crew::Turns : public TurnLoop::Turns {
 public:
  // `idle`: null: it does not rest.
  Turns(Crew& crew, Worker& worker, IdleWait* idle) : crew_(crew), worker_(worker), idle_(idle) {}
  void take(Nanoseconds now) override {
    crew_.workers_.act_as(worker_);
    if (idle_ != nullptr) idle_->note(now);
    crew_.sampler_.turn(now, crew_.workers_.begin_turn());
  }
  bool is_gone() const override { return crew_.sampler_.process_gone(); }
  Nanoseconds stopped() const override { return crew_.sampler_.counts().stood; }
  void finish() override {
    if (worker_.events_only) return;
    crew_.end_others();
    crew_.workers_.act_as(worker_);
    crew_.sampler_.finish(crew_.loop_.now());
  }

 private:
  Crew& crew_;
  Worker& worker_;
  IdleWait* idle_;
};

// The others work as long as there are events.
class SamplerThread::Crew::FirstEventWait : public EventWait {
 public:
  explicit FirstEventWait(Crew& crew)
      : EventWait(crew.sampler_, crew.workers_, crew.workers_.first()), crew_(crew) {}
  TurnLoop::Next wait(TurnLoop& loop) override {
    const TurnLoop::Next next = EventWait::wait(loop);
    if (next != TurnLoop::Next::another_way) {
      if (crew_.owner_.config_.real_time) crew_.start_others();
    } else if (!crew_.others_.empty() && crew_.sampler_.native_source() != NativeSource::perf) {
      crew_.end_others();
    }
    return next;
  }

 private:
  Crew& crew_;
};

void SamplerThread::Crew::run() {
  Worker& first = workers_.first();
  const bool native = owner_.config_.native.has_value();
  const SharedTimers& timers = owner_.timers_;
  TimerWait timer(first, owner_.config_.real_time && !native ? timers.timer : nullptr);
  FirstEventWait events(*this);
  std::optional<IdleWait> idle;
  if (timers.watch != nullptr && loop_.numbers().rate_hz > 0 && !native)
    idle.emplace(*timers.watch, sampler_, workers_, timer, owner_.config_.pid, owner_.stop_);
  Turns turns(*this, first, idle ? &*idle : nullptr);
  std::vector<TurnLoop::Waiting*> ways{&timer};
  if (native) ways.insert(ways.begin(), &events);
  if (idle) ways.insert(ways.begin(), &*idle);
  loop_.run(turns, ways, TurnLoop::Next::turn, owner_.stop_);
  const std::lock_guard lock(owner_.mutex_);
  copy_numbers(sampler_, loop_.numbers(), owner_.published_);
  owner_.version_.fetch_add(1, std::memory_order_release);
}

// A worker on a CPU of its own samples only when an event has caught a thread there.
void SamplerThread::Crew::run_on_events(int cpu, std::atomic<pid_t>& tid) {
  prepare_thread(tid);
  if (take_best_class() == SchedulingClass::real_time && workers_.pin(0, cpu)) {
    loop_.lock().lock();
    Worker& worker = workers_.add(cpu);
    worker.tid = ::gettid();
    loop_.lock().unlock();
    Turns turns(*this, worker, nullptr);
    EventWait events(sampler_, workers_, worker);
    loop_.run(turns, {&events}, TurnLoop::Next::no_turn, others_are_over_);
  }
  tid = 0;
}

// One for each further CPU, once there are events. Fewer if no more threads are granted: the others move from
// CPU to CPU.
void SamplerThread::Crew::start_others() {
  const std::vector<int> cpus = std::exchange(cpus_, {});
  if (cpus.size() < 2) return;
  workers_.follow(cpus.front());
  try {
    for (size_t i = 1; i < std::min(cpus.size(), kMostWorkers); ++i)
      others_.emplace_back([this, &tid = owner_.tids_[i], cpu = cpus[i]] { run_on_events(cpu, tid); });
  } catch (const std::system_error&) {
  }
}

// Holding the turn lock, which is released and taken again.
void SamplerThread::Crew::end_others() {
  others_are_over_ = true;
  workers_.wake_all();
  loop_.lock().unlock();
  for (auto& other : others_) other.join();
  others_.clear();
  loop_.lock().lock();
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
  Crew(*this, numbers).run();
  over_ = true;
}

std::string describe_mode(const SamplerThread::Numbers& numbers) {
  const Counts& counts = numbers.counts;
  Rights granted;
  granted.kernel = numbers.mode == Mode::kernel;
  granted.proof = !numbers.schedstat_off;
  granted.scheduling = numbers.scheduling;
  // If all stops were refused, they are not mentioned.
  granted.stops = counts.stopped_alone > 0 || counts.stop_refused == 0;
  // Without a migration, it has run on none of the program's CPUs.
  if (counts.cpu_refused > 0) granted.cpus = counts.migrations == 0 ? Rights::Cpus::none : Rights::Cpus::some;
  Plan found = plan_for(granted, {numbers.mode, {}});
  found.by_perf = numbers.by_perf > numbers.by_clock;
  found.native = numbers.native;
  found.kernel_frames = numbers.events.kernel;
  return describe(found);
}

std::vector<std::string> details_of(const SamplerThread::Numbers& numbers) {
  std::vector<std::string> lines;
  if (!numbers.native || numbers.native == NativeSource::kernel) return lines;
  const bool events = numbers.native == NativeSource::perf;
  if (const auto why = why_no_kernel_frames(events, numbers.events.kernel); !why.empty())
    lines.emplace_back(why);
  if (events && numbers.events.without > 0) {
    lines.push_back(
        fmt::format("up to {} running threads were without a perf event: there may be {} at once "
                    "(descriptors, locked memory); they took turns",
                    numbers.events.without, numbers.events.most));
  }
  return lines;
}

}  // namespace phlox::sampler
