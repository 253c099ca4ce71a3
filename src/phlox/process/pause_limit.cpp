#include "phlox/process/pause_limit.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <string>

#include "phlox/base/interrupted.h"

namespace phlox::process {
namespace {

// Nothing below here may allocate or lock: it runs in a child of a multithreaded process.

// Whether a signal has stopped the process. `path`: its /proc/PID/stat.
bool is_stopped(const char* path) {
  char text[512];
  const int file = ::open(path, O_RDONLY | O_CLOEXEC);
  const ssize_t size = file >= 0 ? ::read(file, text, sizeof text) : -1;
  if (file >= 0) ::close(file);
  const auto* const name_end =
      size > 0 ? static_cast<const char*>(::memrchr(text, ')', static_cast<size_t>(size))) : nullptr;
  return name_end != nullptr && name_end + 2 < text + size && name_end[2] == 'T';
}

// Closes all other inherited descriptors, so that no lock of a recording is kept either.
void keep_only(int timer, int life) {
  // Each may already have the other's target number.
  const int kept[] = {::fcntl(timer, F_DUPFD, 3), ::fcntl(life, F_DUPFD, 3)};
  if (kept[0] < 0 || kept[1] < 0) ::_exit(0);
  ::dup2(kept[0], 0);
  ::dup2(kept[1], 1);
  if (::syscall(SYS_close_range, 2U, ~0U, 0U) == 0) return;
  for (int file = 2; file < 65536; ++file) ::close(file);
}

}  // namespace

void PauseLimit::watch(Shared& shared, pid_t recorder, const char* status, int timer, int life) {
  constexpr int kAgainMs = 1, kNice = -10;  // if permitted
  sigset_t all;
  sigfillset(&all);
  ::sigprocmask(SIG_SETMASK, &all, nullptr);
  ::setsid();
  ::prctl(PR_SET_NAME, "phlox-pause");
  ::setpriority(PRIO_PROCESS, 0, kNice);
  keep_only(timer, life);
  pollfd wanted[] = {{0, POLLIN, 0}, {1, POLLIN, 0}};
  for (;;) {
    if (retried([&] { return ::poll(wanted, 2, -1); }) < 0 || wanted[1].revents != 0) ::_exit(0);
    uint64_t times = 0;
    (void)!::read(0, &times, sizeof times);
    while (shared.held > 0) {
      if (is_stopped(status)) {
        shared.stop_again = 1;
        // It may have been continued in the meantime.
        if (is_stopped(status)) {
          ::kill(recorder, SIGCONT);
        } else {
          shared.stop_again = 0;
        }
      }
      if (::poll(&wanted[1], 1, kAgainMs) > 0) ::_exit(0);
    }
    // The recorder released its threads before it was continued.
    if (shared.stop_again.exchange(0) != 0) ::kill(recorder, SIGSTOP);
  }
}

PauseLimit& PauseLimit::here() {
  static PauseLimit limit;
  return limit;
}

PauseLimit::PauseLimit() {
  void* const room =
      ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (room == MAP_FAILED) return;
  shared_ = new (room) Shared{};
  timer_ = Descriptor(::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK));
  int ends[2];
  if (!timer_ || ::pipe2(ends, O_CLOEXEC) != 0) return;
  const Descriptor end(ends[0]);
  life_ = Descriptor(ends[1]);
  const pid_t recorder = ::getpid();
  const std::string status = fmt::format("/proc/{}/stat", recorder);
  const pid_t watcher = ::fork();
  if (watcher == 0) watch(*shared_, recorder, status.c_str(), timer_.get(), end.get());
  watcher_ = watcher > 0 ? watcher : 0;
}

PauseLimit::~PauseLimit() {
  life_.close();
  if (watcher_ != 0) (void)retried([&] { return ::waitpid(watcher_, nullptr, __WALL); });
  if (shared_ != nullptr) ::munmap(shared_, sizeof(Shared));
}

void PauseLimit::begin() {
  if (watcher_ == 0) return;
  constexpr int kTries = 100;
  for (int tries = 0; shared_->stop_again != 0 && shared_->held > 0 && tries < kTries; ++tries) ::usleep(100);
  ++shared_->held;
  // Never disarmed: if the timer expires while nothing is held, that has no effect.
  const Nanoseconds longest_now = longest_;
  const itimerspec longest{{}, {longest_now / kSecond, longest_now % kSecond}};
  ::timerfd_settime(timer_.get(), 0, &longest, nullptr);
}

void PauseLimit::end() {
  if (watcher_ == 0 || --shared_->held > 0) return;
  if (shared_->stop_again.exchange(0) != 0) ::kill(::getpid(), SIGSTOP);
}

}  // namespace phlox::process
