#include "phlox/sampler/capture/busy_tasks.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

#include "phlox/base/descriptor.h"
#include "phlox/process/cpu_set.h"
#include "phlox/process/thread_probe.h"

namespace phlox::sampler {
namespace {

constexpr Nanoseconds kAccountsEvery = kSecond / 5;
// Reading the accounts of 2,000 threads takes 6 ms; it may use at most a twentieth of a CPU.
constexpr Nanoseconds kPausePerRead = 20;
constexpr uint64_t kBusy = 1'000'000;  // ns
constexpr Nanoseconds kAskedLately = 5 * kSecond;
constexpr size_t kMostTasks = 65536;

std::optional<uint64_t> used_by(int tasks, const char* name) {
  const std::string path = fmt::format("{}/schedstat", name);
  const Descriptor file(::openat(tasks, path.c_str(), O_RDONLY | O_CLOEXEC));
  char text[128];
  const ssize_t size = file ? ::read(file.get(), text, sizeof text) : -1;
  if (size <= 0) return {};
  const auto stat = process::parse_schedstat(std::string_view(text, static_cast<size_t>(size)));
  return stat ? std::optional(stat->run_ns) : std::nullopt;
}

// A new thread inherits the scheduling class and the CPUs of its creator, which may be a worker.
void be_ordinary() {
  const sched_param none{};
  ::sched_setscheduler(0, SCHED_OTHER, &none);
  process::CpuSet::of_all().move(0);
}

}  // namespace

BusyTasks::~BusyTasks() {
  {
    const std::lock_guard lock(mutex_);
    end_ = true;
  }
  asked_.notify_one();
  if (thread_.joinable()) thread_.join();
}

std::unordered_set<pid_t> BusyTasks::busy() {
  const std::lock_guard lock(mutex_);
  const bool first = asked_at_ == 0;
  asked_at_ = clock_now();
  asked_.notify_one();
  if (!first) return busy_;
  try {
    thread_ = std::thread([this] { run(); });
  } catch (const std::system_error&) {
    // Without the thread, no busy task is found.
  }
  return {};
}

void BusyTasks::read_accounts() {
  const std::unique_ptr<DIR, int (*)(DIR*)> tasks(::opendir(fmt::format("/proc/{}/task", pid_).c_str()),
                                                  ::closedir);
  if (!tasks) return;
  std::unordered_map<pid_t, uint64_t> used;
  std::unordered_set<pid_t> busy;
  while (const dirent* entry = ::readdir(tasks.get())) {
    const auto tid = static_cast<pid_t>(std::strtol(entry->d_name, nullptr, 10));
    if (tid <= 0 || used.size() == kMostTasks) continue;
    const auto now = used_by(::dirfd(tasks.get()), entry->d_name);
    if (!now) continue;
    const auto before = used_.find(tid);
    if (before != used_.end() && *now >= before->second + kBusy) busy.insert(tid);
    used.emplace(tid, *now);
  }
  used_ = std::move(used);
  const std::lock_guard lock(mutex_);
  busy_ = std::move(busy);
}

void BusyTasks::run() {
  be_ordinary();
  std::unique_lock lock(mutex_);
  while (!end_) {
    lock.unlock();
    const Nanoseconds begin = clock_now();
    read_accounts();
    const Nanoseconds pause = std::max(kAccountsEvery, (clock_now() - begin) * kPausePerRead);
    lock.lock();
    asked_.wait_for(lock, std::chrono::nanoseconds(pause), [this] { return end_; });
    asked_.wait(lock, [this] { return end_ || clock_now() - asked_at_ < kAskedLately; });
  }
}

}  // namespace phlox::sampler
