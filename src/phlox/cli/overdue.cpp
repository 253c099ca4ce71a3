#include "phlox/cli/overdue.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <utility>

#include "phlox/process/kept_rights.h"

namespace phlox::cli {
namespace {

// The command is given up after this many consecutive samples without progress. Samples are counted instead
// of time: a process that was stopped (SIGSTOP) had no time to do anything.
constexpr int kSamples = 20;
// CPU time between two samples that is no progress: this thread's own, and the command's idle polls.
constexpr Nanoseconds kNothing = 2 * kSecond / 1000;

Nanoseconds cpu_time() {
  timespec now{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<Nanoseconds>(now.tv_sec) * kSecond + now.tv_nsec;
}

}  // namespace

Error Overdue::error_of(Why why, std::string_view left) {
  return {ErrorKind::system,
          fmt::format("gave up: {}. {}",
                      why == Why::no_answer
                          ? "a process or a file system does not answer. Reading the memory or a file of a "
                            "process did not return"
                          : "what the processes and their files make it read is too much to end in time",
                      left),
          ""};
}

Overdue::Overdue(const std::atomic<bool>& stop, std::function<void(Why)> give_up, const Limits& limits)
    : stop_(stop), give_up_(std::move(give_up)), limits_(limits), thread_([this] { watch(); }) {}

Overdue::~Overdue() {
  {
    const std::lock_guard lock(mutex_);
    over_ = true;
  }
  ended_.notify_all();
  thread_.join();
}

void Overdue::due_after(Nanoseconds duration) {
  due_ = clock_now() + std::max<Nanoseconds>(duration, 1);
}

bool Overdue::is_due() const {
  const Nanoseconds due = due_;
  return stop_ || (due != 0 && clock_now() >= due);
}

void Overdue::watch() {
  process::give_up_other_capabilities();
  int idle = 0;
  uint64_t signs = signs_;
  Nanoseconds used = cpu_time();
  Nanoseconds at_due = used;
  std::unique_lock lock(mutex_);
  while (
      !ended_.wait_for(lock, std::chrono::nanoseconds(limits_.patience / kSamples), [&] { return over_; })) {
    const uint64_t signs_now = signs_;
    const Nanoseconds used_now = cpu_time();
    const bool nothing = is_due() && signs_now == signs && used_now - used < kNothing;
    idle = nothing ? idle + 1 : 0;
    signs = signs_now;
    used = used_now;
    if (!is_due()) at_due = used_now;
    const bool too_much = used_now - at_due > limits_.work;
    if (idle < kSamples && !too_much) continue;
    give_up_(too_much ? Why::too_much_work : Why::no_answer);
    return;
  }
}

}  // namespace phlox::cli
