#include "phlox/cli/signal_watch.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdint>
#include <utility>

#include "phlox/target/kept_rights.h"

namespace phlox::cli {

SignalWatch::SignalWatch(std::span<const int> signals) {
  sigset_t watched;
  sigemptyset(&watched);
  for (const int signal : signals) {
    struct sigaction action {};
    // A blocked signal is never ignored by the kernel (kernel/signal.c: sig_ignored): blocking is what takes
    // one, and what is to stay ignored must not be blocked. A launched program still finds it ignored.
    const bool asks_for_the_end = signal == SIGINT || signal == SIGTERM;
    if (!asks_for_the_end && ::sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN)
      continue;
    sigaddset(&watched, signal);
  }
  ::pthread_sigmask(SIG_BLOCK, &watched, &before_);
  signals_ = Descriptor(::signalfd(-1, &watched, SFD_CLOEXEC));
  end_ = Descriptor(::eventfd(0, EFD_CLOEXEC));
}

void SignalWatch::start(Handler handler) {
  thread_ = std::thread([this, call = std::move(handler)] {
    target::give_up_other_capabilities();
    pollfd polled[2] = {{signals_.get(), POLLIN, 0}, {end_.get(), POLLIN, 0}};
    for (;;) {
      if (::poll(polled, 2, -1) < 0 && errno != EINTR) return;
      if ((polled[1].revents & POLLIN) != 0) return;
      if ((polled[0].revents & POLLIN) == 0) continue;
      signalfd_siginfo seen{};
      if (::read(signals_.get(), &seen, sizeof seen) != sizeof seen) return;
      call({static_cast<int>(seen.ssi_signo), seen.ssi_code == SI_KERNEL});
    }
  });
}

SignalWatch::~SignalWatch() {
  if (thread_.joinable()) {
    const uint64_t one = 1;
    (void)!::write(end_.get(), &one, sizeof one);
    thread_.join();
  }
  // A reader that went away was an error of writing already; that signal is for this thread alone, and the
  // one that watches never saw it.
  sigset_t pipe;
  sigemptyset(&pipe);
  sigaddset(&pipe, SIGPIPE);
  const timespec at_once{};
  if (::sigismember(&before_, SIGPIPE) == 0) ::sigtimedwait(&pipe, nullptr, &at_once);
  ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

}  // namespace phlox::cli
