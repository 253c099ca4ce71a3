// Ends a command that must end and does not. A read of another process's memory or files may never return: a
// file system can be a program that does not answer. Only the end of phlox interrupts such a read. And a
// process may make us read more than anyone waits for.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <string_view>
#include <thread>

#include "phlox/base/clock.h"
#include "phlox/base/result.h"

namespace phlox::cli {

class Overdue {
 public:
  enum class Why { no_answer, too_much_work };
  struct Limits {
    Nanoseconds patience = 10 * kSecond;  // in which the process does nothing
    Nanoseconds work = 180 * kSecond;     // of CPU time
  };
  // `give_up` is called at most once, on a thread of its own: when `stop` is set or the time of due_after()
  // is over, and one of the limits has since been reached.
  Overdue(const std::atomic<bool>& stop, std::function<void(Why)> give_up, const Limits& limits);
  ~Overdue();
  Overdue(const Overdue&) = delete;
  Overdue& operator=(const Overdue&) = delete;

  // `left`: a sentence about what was saved of the command's work.
  static Error error_of(Why why, std::string_view left);

  // Counts from now.
  void due_after(Nanoseconds duration);
  // Reports that the command continues normally.
  void alive() { ++signs_; }

 private:
  void watch();
  bool is_due() const;

  const std::atomic<bool>& stop_;
  std::function<void(Why)> give_up_;
  Limits limits_;
  std::atomic<Nanoseconds> due_{0};  // 0: unknown
  std::atomic<uint64_t> signs_{0};
  std::mutex mutex_;
  std::condition_variable ended_;
  bool over_ = false;
  std::thread thread_;
};

}  // namespace phlox::cli
