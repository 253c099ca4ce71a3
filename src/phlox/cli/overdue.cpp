#include "phlox/cli/overdue.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <deque>
#include <utility>

#include "phlox/base/side_thread.h"
#include "phlox/process/kept_rights.h"

namespace phlox::cli {
namespace {

// The command is given up once this many samples in a row show no progress. Samples are counted instead
// of time: a process that was stopped (SIGSTOP) had no time to do anything.
constexpr size_t kSamples = 20;
// CPU time between two samples that is no progress, on average: the command's idle polls. A single one may
// take longer on a busy host.
constexpr Nanoseconds kNothing = 2 * kSecond / 1000;

Nanoseconds cpu_time() {
  const Nanoseconds side = SideThread::cpu_time();  // read first, so that the rest is never too small
  return clock_now(CLOCK_PROCESS_CPUTIME_ID) - side;
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
  const SideThread side;
  process::give_up_other_capabilities();
  std::deque<Nanoseconds> used;  // at the last samples without a sign of life
  uint64_t signs = signs_;
  Nanoseconds at_due = cpu_time();
  std::unique_lock lock(mutex_);
  while (
      !ended_.wait_for(lock, std::chrono::nanoseconds(limits_.patience / kSamples), [&] { return over_; })) {
    const uint64_t signs_now = signs_;
    const Nanoseconds now = cpu_time();
    const bool due = is_due();
    if (!due) at_due = now;
    if (!due || signs_now != signs) used.clear();
    signs = signs_now;
    used.push_back(now);
    if (used.size() > kSamples + 1) used.pop_front();
    const bool nothing = used.size() > kSamples && now - used.front() < kNothing * Nanoseconds(kSamples);
    const bool too_much = now - at_due > limits_.work;
    if (!nothing && !too_much) continue;
    give_up_(too_much ? Why::too_much_work : Why::no_answer);
    return;
  }
}

}  // namespace phlox::cli
