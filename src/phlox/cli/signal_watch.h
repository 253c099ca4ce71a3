// Delivers signals as calls on a thread of their own, so that no handler interrupts anything. Make it before
// other threads and before a program is launched: from then on the signals are blocked everywhere. A signal
// that was ignored stays ignored (SIGHUP under nohup) unless it asks for the end: a shell without job control
// starts background processes with SIGINT ignored, and a recording that waits for it would never end. It
// needs no descriptor, so Ctrl-C also works at the limit of open files.
#pragma once

#include <signal.h>

#include <atomic>
#include <functional>
#include <span>
#include <thread>

namespace phlox::cli {

struct SignalSeen {
  int number = 0;
  // From the terminal (Ctrl-C): the kernel sent it to all processes in the foreground, a launched program
  // included.
  bool from_kernel = false;
};

class SignalWatch {
 public:
  using Handler = std::function<void(SignalSeen)>;
  explicit SignalWatch(std::span<const int> signals);
  ~SignalWatch();
  SignalWatch(const SignalWatch&) = delete;
  SignalWatch& operator=(const SignalWatch&) = delete;

  // The mask as it was before: a launched program gets it.
  const sigset_t& mask_before() const { return before_; }
  // Calls `handler` for each signal, including those since the construction. Call it once. A second SIGTERM,
  // SIGINT or SIGHUP within a fifth of a second belongs to the first, unless it comes from the terminal.
  void start(Handler handler);

 private:
  void run(const Handler& handler) const;

  sigset_t before_{};
  sigset_t waited_for_{};  // the watched ones, and the one that ends the thread
  std::atomic<bool> ended_{false};
  std::thread thread_;
};

}  // namespace phlox::cli
