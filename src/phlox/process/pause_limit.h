// Limits how long we hold a thread of a target if we cannot release it: a recorder that is stopped (SIGSTOP,
// Ctrl-Z) in the middle of a sample would keep the thread stopped, too. A small process of ours, in a session
// of its own, notices when a stopped recorder holds a thread for too long. It lets us run until the thread is
// released; then we stop ourselves again.
#pragma once

#include <sys/types.h>

#include <atomic>

#include "phlox/base/clock.h"
#include "phlox/base/descriptor.h"

namespace phlox::process {

class PauseLimit {
 public:
  static constexpr Nanoseconds kLongest = 10'000'000;
  // From then on, in place of kLongest.
  static void set_longest(Nanoseconds longest) { longest_ = longest; }

  // Made when it is first needed, which starts the process. If that is refused, nothing watches.
  static PauseLimit& here();
  PauseLimit();
  ~PauseLimit();
  PauseLimit(const PauseLimit&) = delete;
  PauseLimit& operator=(const PauseLimit&) = delete;

  // Around each stop of a thread, from any thread of ours.
  void begin();
  void end();
  // 0: nothing watches.
  pid_t watcher() const { return watcher_; }

 private:
  struct Shared {
    std::atomic<int> held;        // threads of a target
    std::atomic<int> stop_again;  // we must stop when none is held
  };

  inline static std::atomic<Nanoseconds> longest_{kLongest};

  [[noreturn]] static void watch(Shared& shared, pid_t recorder, const char* status, int timer, int life);

  Shared* shared_ = nullptr;
  Descriptor timer_;  // expires when a thread is held for too long; the watcher waits for it
  Descriptor life_;   // open as long as we live
  pid_t watcher_ = 0;
};

}  // namespace phlox::process
