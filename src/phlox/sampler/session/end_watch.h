// The CPU time of a process's first thread at its end. A process that has ended can be read until its parent
// reaps it, which may be at once. So one thread of ours, of the real-time class if allowed, only waits for
// ends. Then the time between the last sample and the end is known; for a child that lives for 25 ms that is
// a tenth. Made by the recorder, whose thread calls it.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "phlox/base/clock.h"
#include "phlox/base/descriptor.h"
#include "phlox/process/thread_probe.h"

namespace phlox::sampler {

class EndWatch {
 public:
  // The end of one process.
  class End {
   public:
    explicit End(pid_t pid) : probe_(pid, pid) { probe_.schedstat(); }
    // After its end; none: it was reaped before we could read it. Waits for the watch, a millisecond at most.
    std::optional<Nanoseconds> used();

   private:
    friend class EndWatch;
    void read();

    std::mutex mutex_;
    process::ThreadProbe probe_;
    std::optional<Nanoseconds> used_;
    std::atomic<bool> is_known_{false};
  };

  EndWatch();
  ~EndWatch();  // ends the thread
  EndWatch(const EndWatch&) = delete;
  EndWatch& operator=(const EndWatch&) = delete;

  // `pidfd`: readable when it has ended, and open until forget().
  std::shared_ptr<End> watch(pid_t pid, const Descriptor& pidfd);
  void forget(const Descriptor& pidfd);
  // The call that the kernel refused, and why. Empty: none.
  std::string refused();

 private:
  void run();
  void note_refused(const char* call, int error);

  Descriptor events_, stop_;
  std::atomic<bool> stops_{false};
  std::mutex mutex_;
  std::map<int, std::shared_ptr<End>> ends_;  // by pidfd
  std::string refused_;
  std::thread thread_;
};

}  // namespace phlox::sampler
