#include "phlox/sampler/session/end_watch.h"

#include <fmt/format.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <utility>
#include <vector>

#include "phlox/base/side_thread.h"
#include "phlox/sampler/capture/sample_timer.h"
#include "phlox/sampler/session/scheduling.h"

namespace phlox::sampler {
namespace {

// The kernel reports an end shortly before the thread leaves its CPU for good, and until then counts only up
// to its last tick.
constexpr std::array<Nanoseconds, 4> kAskedAgainAfter = {0, 30'000, 100'000, 300'000};
constexpr Nanoseconds kEndPatience = 1'000'000;
constexpr int kAtOnce = 16;
// The thread ends within this time if the kernel refuses what wakes it up.
constexpr int kLongestWaitMs = 1000;
constexpr Nanoseconds kPauseAfterRefusal = 50'000'000;

}  // namespace

void EndWatch::End::read() {
  const std::lock_guard lock(mutex_);
  if (const auto stat = probe_.schedstat(); stat && !stat->off())
    used_ = std::max(used_.value_or(0), static_cast<Nanoseconds>(stat->run_ns));
}

std::optional<Nanoseconds> EndWatch::End::used() {
  const Nanoseconds until = clock_now() + kEndPatience;
  while (!is_known_.load(std::memory_order_acquire) && clock_now() < until)
    sleep_until(clock_now() + kEndPatience / 10);
  read();
  const std::lock_guard lock(mutex_);
  return used_;
}

EndWatch::EndWatch()
    : events_(::epoll_create1(EPOLL_CLOEXEC)), stop_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  // Then used() reads the time itself, and no thread is needed.
  if (!events_) {
    note_refused("epoll_create1", errno);
    return;
  }
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.fd = stop_.get();
  // Without it the thread just ends a little later.
  if (stop_) ::epoll_ctl(events_.get(), EPOLL_CTL_ADD, stop_.get(), &event);
  thread_ = std::thread([this] { run(); });
}

EndWatch::~EndWatch() {
  if (!thread_.joinable()) return;
  stops_ = true;
  ::eventfd_write(stop_.get(), 1);
  thread_.join();
}

std::string EndWatch::refused() {
  const std::lock_guard lock(mutex_);
  return refused_;
}

void EndWatch::note_refused(const char* call, int error) {
  const std::lock_guard lock(mutex_);
  if (refused_.empty()) refused_ = fmt::format("{}: {}", call, std::strerror(error));
}

std::shared_ptr<EndWatch::End> EndWatch::watch(pid_t pid, const Descriptor& pidfd) {
  auto end = std::make_shared<End>(pid);
  {
    const std::lock_guard lock(mutex_);
    ends_[pidfd.get()] = end;
  }
  epoll_event event{};
  event.events = EPOLLIN | EPOLLONESHOT;
  event.data.fd = pidfd.get();
  if (!events_ || !pidfd) {
    end->is_known_ = true;
  } else if (::epoll_ctl(events_.get(), EPOLL_CTL_ADD, pidfd.get(), &event) != 0) {
    note_refused("epoll_ctl", errno);
    end->is_known_ = true;
  }
  return end;
}

void EndWatch::forget(const Descriptor& pidfd) {
  ::epoll_ctl(events_.get(), EPOLL_CTL_DEL, pidfd.get(), nullptr);
  const std::lock_guard lock(mutex_);
  ends_.erase(pidfd.get());
}

void EndWatch::run() {
  const SideThread side;
  ::pthread_setname_np(::pthread_self(), "phlox-ends");
  sigset_t all;
  sigfillset(&all);
  ::pthread_sigmask(SIG_BLOCK, &all, nullptr);
  take_best_class();
  std::array<epoll_event, kAtOnce> events;
  while (!stops_) {
    const int count = ::epoll_wait(events_.get(), events.data(), kAtOnce, kLongestWaitMs);
    if (count < 0 && errno != EINTR) {
      note_refused("epoll_wait", errno);
      sleep_until(clock_now() + kPauseAfterRefusal);
    }
    std::vector<std::shared_ptr<End>> ended;
    for (int i = 0; i < count; ++i) {
      const int which = events[static_cast<size_t>(i)].data.fd;
      if (which == stop_.get()) return;
      const std::lock_guard lock(mutex_);
      if (const auto found = ends_.find(which); found != ends_.end()) ended.push_back(found->second);
    }
    for (const Nanoseconds pause : kAskedAgainAfter) {
      if (ended.empty()) break;
      if (pause > 0) sleep_until(clock_now() + pause);
      for (const auto& end : ended) end->read();
    }
    for (const auto& end : ended) end->is_known_.store(true, std::memory_order_release);
  }
}

}  // namespace phlox::sampler
