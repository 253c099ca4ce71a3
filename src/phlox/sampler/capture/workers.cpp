#include "phlox/sampler/capture/workers.h"

#include <fcntl.h>
#include <sys/eventfd.h>
#include <unistd.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <algorithm>

#include "phlox/process/cpu_set.h"
#include "phlox/sampler/capture/sample_timer.h"

namespace phlox::sampler {
namespace {

void breathe() {
#if defined(__x86_64__)
  ::_mm_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

}  // namespace

void Worker::wake() const {
  ::eventfd_write(wake_up.get(), 1);
}

std::optional<bool> Worker::found_it_waiting(process::ThreadProbe& probe) {
  const auto left = probe.left_cpu_at();
  if (!left) return {};
  if (!sched_) sched_ = Descriptor(::open("/proc/thread-self/sched", O_RDONLY | O_CLOEXEC));
  char text[512];
  const ssize_t size = ::pread(sched_.get(), text, sizeof text, 0);
  const auto came = size > 0 ? process::parse_exec_start({text, static_cast<size_t>(size)}) : std::nullopt;
  return came ? std::optional(*left < *came) : std::nullopt;
}

bool TurnLock::try_lock() {
  // Reads the clock only once per this many spins.
  constexpr int kSpins = 64;
  for (Nanoseconds until = 0;;) {
    for (int i = 0; i < kSpins; ++i) {
      if (!taken_.load(std::memory_order_relaxed) && !taken_.exchange(true, std::memory_order_acquire))
        return true;
      breathe();
    }
    const Nanoseconds now = clock_now();
    if (until == 0) until = now + kPatience;
    if (now >= until) return false;
  }
}

bool TurnLock::lock() {
  // Longer than a turn should take.
  constexpr Nanoseconds kLongTurn = 1'000'000;
  bool slept = false;
  for (; !try_lock(); slept = true) sleep_until(clock_now() + kLongTurn);
  return slept;
}

Workers::Workers(std::vector<int> kept_free)
    : kept_free_(std::move(kept_free)), after_moving_(0, static_cast<uint64_t>(clock_now(CLOCK_REALTIME))) {
  current_ = &add(-1);
}

Worker& Workers::add(int cpu) {
  workers_.push_back(std::make_unique<Worker>());
  Worker& worker = *workers_.back();
  worker.events_only = workers_.size() > 1;
  worker.cpu = cpu;
  worker.wake_up = Descriptor(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  return worker;
}

uint64_t Workers::begin_turn() {
  if (current_->round == round_) ++round_;
  current_->round = round_;
  return round_;
}

uint64_t Workers::skip_rounds(uint64_t rounds) {
  round_ += rounds;
  current_->round = round_;
  return round_;
}

void Workers::wake_all() const {
  for (const auto& worker : workers_) worker->wake();
}

void Workers::wake_at(int cpu) const {
  for (const auto& worker : workers_) {
    if (worker->cpu == cpu && worker.get() != current_) worker->wake();
  }
}

bool Workers::is_kept_free(int cpu) const {
  return std::find(kept_free_.begin(), kept_free_.end(), cpu) != kept_free_.end();
}

bool Workers::pin(pid_t tid, int cpu) const {
  if (cpu < 0 || cpu >= process::kMostCpus || is_kept_free(cpu)) return false;
  return process::CpuSet::of_one(cpu).move(tid) == 0;
}

bool Workers::move(Worker& worker, pid_t tid, int cpu) {
  if (!pin(tid, cpu)) return false;
  worker.cpu = cpu;
  ++migrations_;
  return true;
}

bool Workers::follow(int cpu) {
  return move(*current_, 0, cpu);
}

bool Workers::wake_up_on(int cpu, Nanoseconds interval) {
  constexpr Nanoseconds kLongest = 100'000;
  if (!follow(cpu)) return false;
  after_moving_.set_interval(std::min(kLongest, interval / 8));
  sleep_until(clock_now() + after_moving_.draw());
  return true;
}

void Workers::send_one_to(int cpu) {
  if (cpu < 0 ||
      std::any_of(workers_.begin(), workers_.end(), [cpu](const auto& worker) { return worker->cpu == cpu; }))
    return;
  for (const auto& worker : workers_) {
    if (worker.get() == current_ || worker->tid == 0 || worker->wanted.size() > 1) continue;
    if (move(*worker, worker->tid, cpu)) worker->wake();
    return;
  }
  follow(cpu);
}

std::vector<int> Workers::common_cpus(pid_t process) const {
  const auto mine = process::CpuSet::read(0), its = process::CpuSet::read(process);
  if (!mine || !its) return {};
  auto cpus = mine->list();
  std::erase_if(cpus, [&](int cpu) { return !its->has(cpu) || is_kept_free(cpu); });
  return cpus;
}

}  // namespace phlox::sampler
