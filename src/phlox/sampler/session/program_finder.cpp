#include "phlox/sampler/session/program_finder.h"

#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "phlox/base/clock.h"
#include "phlox/base/side_thread.h"
#include "phlox/sampler/session/scheduling.h"

namespace phlox::sampler {
namespace {

// Without births, searches take a hundredth of a CPU, and up to three hundredths only if there would be fewer
// than a hundred a second. While children come and go, they take a third: one that lives 20 ms must be found
// twice.
constexpr Nanoseconds kShortestFinderPause = 4'000'000, kEnough = kSecond / 100,
                      kLongestFinderPause = kSecond / 2;
constexpr Nanoseconds kPauseForCost = 100, kShortestPauseForCost = 30;
constexpr Nanoseconds kShortestPauseForBirths = 2'000'000, kPauseForCostOfBirths = 2;
constexpr Nanoseconds kLately = kSecond;
// A thread that is already awake checks in 3 us what costs 25 us with a wake-up.
constexpr Nanoseconds kAskedEvery = kSecond / 125, kPauseWhileHelped = kSecond / 20;
constexpr Nanoseconds kPauseWhileReported = kSecond / 10;
constexpr int kNice = -10;  // if allowed

Nanoseconds quiet_pause(Nanoseconds cost) {
  const Nanoseconds shortest = std::max(cost * kShortestPauseForCost, kEnough);
  return std::clamp(std::min(cost * kPauseForCost, shortest), kShortestFinderPause, kLongestFinderPause);
}

}  // namespace

ProgramFinder::ProgramFinder(TreeSearch search, Nanoseconds least_pause)
    : found_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      search_(std::move(search)),
      least_pause_(least_pause) {
  thread_ = std::thread([this] { run(); });
}

ProgramFinder::~ProgramFinder() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

std::vector<ProgramFinder::Found> ProgramFinder::take() {
  const std::lock_guard lock(mutex_);
  uint64_t count = 0;
  [[maybe_unused]] const auto size = ::read(found_.get(), &count, sizeof count);
  return std::exchange(waiting_, {});
}

void ProgramFinder::want(size_t processes) {
  const std::lock_guard lock(mutex_);
  if (std::exchange(wanted_, processes) == 0 && processes > 0) changed_.notify_one();
}

void ProgramFinder::help(Nanoseconds now) {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock || !quiet_until_after_ || is_due_ || now - asked_at_ < kAskedEvery) return;
  asked_at_ = now;
  if (search_.births().last_id() == quiet_until_after_) return;
  is_due_ = true;
  changed_.notify_one();
}

// Other threads that help report when the quiet is over.
void ProgramFinder::sleep(std::unique_lock<std::mutex>& lock, Nanoseconds pause) {
  if (quiet_until_after_ && births_reported_) {
    pause = std::max(pause, kPauseWhileReported);
  } else if (quiet_until_after_ && clock_now() - asked_at_ < kPauseWhileHelped) {
    pause = std::max(pause, kPauseWhileHelped);
  }
  changed_.wait_for(lock, std::chrono::nanoseconds(pause), [this] { return stop_ || is_due_; });
}

void ProgramFinder::check_again(pid_t pid) {
  const std::lock_guard lock(mutex_);
  again_.push_back(pid);
  quiet_until_after_.reset();
  is_due_ = true;
  changed_.notify_one();
}

void ProgramFinder::births_are_reported(bool reported) {
  const std::lock_guard lock(mutex_);
  births_reported_ = reported;
}

ProgramFinder::State ProgramFinder::state() {
  const std::lock_guard lock(mutex_);
  return state_;
}

void ProgramFinder::run() {
  const SideThread side;
  // A process to be found may not live long, but a search for an interpreter takes too long for the real-time
  // class.
  take_best_class(false);
  ::setpriority(PRIO_PROCESS, static_cast<id_t>(::gettid()), kNice);
  uint64_t born = search_.born();
  Nanoseconds last_birth = 0;
  std::unique_lock lock(mutex_);
  while (!stop_) {
    if (wanted_ <= waiting_.size()) {
      changed_.wait(lock, [this] { return stop_ || wanted_ > waiting_.size(); });
      continue;
    }
    const size_t most = wanted_ - waiting_.size();
    for (const pid_t pid : std::exchange(again_, {})) search_.check_again(pid);
    is_due_ = false;
    lock.unlock();
    const Nanoseconds start = clock_now(CLOCK_THREAD_CPUTIME_ID);
    std::vector<Found> fresh;
    for (TreeSearch::Found& one : search_.search(most, &stop_)) {
      if (auto pidfd = watch(one.program->pid))
        fresh.push_back({std::move(one.program), *std::move(pidfd), one.parent});
    }
    const Nanoseconds cost = clock_now(CLOCK_THREAD_CPUTIME_ID) - start;
    lock.lock();
    ++state_.checks;
    state_.any_left = search_.any_left();
    state_.refused = search_.refused();
    state_.too_brief = search_.too_brief();
    if (!fresh.empty()) {
      std::move(fresh.begin(), fresh.end(), std::back_inserter(waiting_));
      const uint64_t one = 1;
      [[maybe_unused]] const auto size = ::write(found_.get(), &one, sizeof one);
    }
    const Nanoseconds now = clock_now();
    if (search_.born() != born) last_birth = now;
    born = search_.born();
    const auto pause = last_birth != 0 && now - last_birth < kLately
                           ? std::max(cost * kPauseForCostOfBirths, kShortestPauseForBirths)
                           : quiet_pause(cost);
    quiet_until_after_ = again_.empty() ? search_.quiet_until_after() : std::nullopt;
    sleep(lock, std::max(pause, least_pause_));
  }
}

}  // namespace phlox::sampler
