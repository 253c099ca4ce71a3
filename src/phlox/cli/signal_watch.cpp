#include "phlox/cli/signal_watch.h"

#include <cerrno>
#include <csignal>
#include <ctime>
#include <utility>

#include "phlox/base/clock.h"
#include "phlox/base/side_thread.h"
#include "phlox/process/kept_rights.h"

namespace phlox::cli {
namespace {

// Ends the thread at once. The thread also ends without it, after kLongestWait.
int end_signal() {
  return SIGRTMIN;
}
constexpr timespec kLongestWait{1, 0};
// timeout(1) sends its signal to the program and then to the whole process group: twice to the program. The
// second one is no request to end at once.
constexpr Nanoseconds kSameRequest = kSecond / 5;
// Stopping and continuing phlox interrupts a wait now and then, but never this often in a row.
constexpr int kMostInterrupted = 20;

// For kernels that refuse or always interrupt sigtimedwait(2): ignoring a signal for a moment removes a
// pending one (sigaction(2)).
void take_without_waiting(const sigset_t& wanted, const SignalWatch::Handler& call) {
  constexpr timespec kPause{0, 50'000'000};
  ::nanosleep(&kPause, nullptr);
  sigset_t pending;
  if (::sigpending(&pending) != 0) return;
  for (int number = 1; number < NSIG; ++number) {
    if (::sigismember(&wanted, number) != 1 || ::sigismember(&pending, number) != 1) continue;
    struct sigaction ignored {
    }, before{};
    ignored.sa_handler = SIG_IGN;
    if (::sigaction(number, &ignored, &before) != 0) continue;
    ::sigaction(number, &before, nullptr);
    if (number != end_signal()) call({number, false});
  }
}

}  // namespace

SignalWatch::SignalWatch(std::span<const int> signals) {
  sigemptyset(&waited_for_);
  sigaddset(&waited_for_, end_signal());
  for (const int signal : signals) {
    struct sigaction action {};
    // The kernel never ignores a blocked signal (kernel/signal.c: sig_ignored), so blocking makes a signal
    // arrive, and one that is to stay ignored must not be blocked. A launched program still finds it ignored.
    const bool asks_for_the_end = signal == SIGINT || signal == SIGTERM;
    if (!asks_for_the_end && ::sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN)
      continue;
    sigaddset(&waited_for_, signal);
  }
  ::pthread_sigmask(SIG_BLOCK, &waited_for_, &before_);
}

void SignalWatch::start(Handler handler) {
  thread_ = std::thread([this, call = std::move(handler)] {
    process::give_up_other_capabilities();
    run(call);
  });
}

void SignalWatch::run(const Handler& handler) const {
  const SideThread side;
  int interrupted = 0, last = 0;
  Nanoseconds last_at = 0;
  const Handler once = [&](SignalSeen seen) {
    const bool asks_for_the_end = seen.number == SIGTERM || seen.number == SIGINT || seen.number == SIGHUP;
    const Nanoseconds before = std::exchange(last_at, clock_now());
    const bool is_repeated = std::exchange(last, seen.number) == seen.number && asks_for_the_end &&
                             !seen.from_kernel && last_at - before < kSameRequest;
    if (!is_repeated) handler(seen);
  };
  while (!ended_) {
    siginfo_t seen{};
    const int number = ::sigtimedwait(&waited_for_, &seen, &kLongestWait);
    interrupted = number <= 0 && errno == EINTR ? interrupted + 1 : 0;
    if (number > 0) {
      if (number != end_signal()) once({number, seen.si_code == SI_KERNEL});
    } else if (errno != EAGAIN && (errno != EINTR || interrupted > kMostInterrupted)) {
      take_without_waiting(waited_for_, once);
    }
  }
}

SignalWatch::~SignalWatch() {
  if (thread_.joinable()) {
    ended_ = true;
    ::pthread_kill(thread_.native_handle(), end_signal());
    thread_.join();
  }
  // A closed reader was already reported as a write error; its signal is for this thread alone, and the
  // watching thread never saw it.
  sigset_t pipe;
  sigemptyset(&pipe);
  sigaddset(&pipe, SIGPIPE);
  const timespec at_once{};
  if (::sigismember(&before_, SIGPIPE) == 0) ::sigtimedwait(&pipe, nullptr, &at_once);
  ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

}  // namespace phlox::cli
