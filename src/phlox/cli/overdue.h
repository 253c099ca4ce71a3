// Ends a command that must end and does not. A read of another process's memory or files may never return: a
// file system can be a program that does not answer. Only the end of phlox interrupts such a read.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>

#include "phlox/base/clock.h"

namespace phlox::cli {

class Overdue {
 public:
  // `give_up` is called at most once, on a thread of its own: when `stop` is set or the time of due_after()
  // is over, and the process has then done nothing for kPatience.
  Overdue(const std::atomic<bool>& stop, std::function<void()> give_up, Nanoseconds patience = kPatience);
  ~Overdue();
  Overdue(const Overdue&) = delete;
  Overdue& operator=(const Overdue&) = delete;

  // From now on.
  void due_after(Nanoseconds duration);
  // The command continues normally.
  void alive() { ++signs_; }

  static constexpr Nanoseconds kPatience = 10 * kSecond;

 private:
  void watch();
  bool is_due() const;

  const std::atomic<bool>& stop_;
  std::function<void()> give_up_;
  Nanoseconds patience_;
  std::atomic<Nanoseconds> due_{0};  // 0: not known
  std::atomic<uint64_t> signs_{0};
  std::mutex mutex_;
  std::condition_variable ended_;
  bool over_ = false;
  std::thread thread_;
};

}  // namespace phlox::cli
