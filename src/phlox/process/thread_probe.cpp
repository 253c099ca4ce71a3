#include "phlox/process/thread_probe.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <limits>
#include <memory>
#include <utility>

#include "phlox/base/clock.h"
#include "phlox/base/text.h"
#include "phlox/process/text_file.h"

namespace phlox::process {
namespace {

// The next number in a list separated by blanks; hexadecimal if it starts with 0x.
template <class Number>
bool take_field(std::string_view& text, Number& number) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\n')) text.remove_prefix(1);
  int base = 10;
  if (text.starts_with("0x")) {
    text.remove_prefix(2);
    base = 16;
  }
  return take_number(text, number, base);
}

}  // namespace

std::optional<SchedStat> parse_schedstat(std::string_view text) {
  SchedStat s;
  if (!take_field(text, s.run_ns) || !take_field(text, s.wait_ns) || !take_field(text, s.count)) return {};
  return s;
}

std::optional<BlockedIn> parse_syscall(std::string_view text) {
  BlockedIn in;
  if (text.starts_with("running")) return in;
  in.running = false;
  if (!take_field(text, in.number)) return {};
  if (in.number >= 0) {
    for (auto& argument : in.arguments) {
      if (!take_field(text, argument)) return {};
    }
  }
  if (!take_field(text, in.stack_pointer) || !take_field(text, in.instruction_pointer)) return {};
  return in;
}

std::optional<ThreadStat> parse_thread_stat(std::string_view text) {
  // comm is in parentheses and may hold any character: the last ')' ends it.
  const size_t close = text.rfind(')');
  if (close == std::string_view::npos || close + 2 >= text.size()) return {};
  text.remove_prefix(close + 2);
  ThreadStat stat;
  stat.state = text.front();
  text.remove_prefix(1);
  constexpr int kFieldFlags = 9, kFieldUserTime = 14, kFieldKernelTime = 15, kFieldCpu = 39;
  for (int field = 4; field <= kFieldCpu; ++field) {
    while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
    uint64_t time = 0;
    if (field == kFieldCpu) return take_number(text, stat.cpu) ? std::optional(stat) : std::nullopt;
    if (field == kFieldFlags) {
      if (!take_field(text, stat.flags)) return {};
      continue;
    }
    if (field == kFieldUserTime || field == kFieldKernelTime) {
      if (!take_field(text, time)) return {};
      stat.ticks += time;
      continue;
    }
    const size_t blank = text.find(' ');
    if (blank == std::string_view::npos) return {};
    text.remove_prefix(blank);
  }
  return {};
}

bool is_kernel_worker(uint64_t flags, std::string_view release) {
  // include/linux/sched.h, with the versions that introduced them.
  constexpr uint64_t kIoWorker = 0x10, kUserWorker = 0x4000;
  constexpr std::pair kIoWorkerSince(5, 12), kUserWorkerSince(6, 4);
  std::pair version(0, 0);
  if (!take_field(release, version.first) || !release.starts_with('.')) return false;
  release.remove_prefix(1);
  if (!take_field(release, version.second)) return false;
  return ((flags & kIoWorker) != 0 && version >= kIoWorkerSince) ||
         ((flags & kUserWorker) != 0 && version >= kUserWorkerSince);
}

bool is_kernel_worker(uint64_t flags) {
  static const utsname host = [] {
    utsname name{};
    ::uname(&name);
    return name;
  }();
  return is_kernel_worker(flags, host.release);
}

size_t count_kernel_workers(pid_t pid) {
  // It would take too long to check more threads than this.
  constexpr nlink_t kMostThreads = 4096;
  const std::string folder = "/proc/" + std::to_string(pid) + "/task";
  struct stat about {};  // its link count: one per thread, plus "." and ".."
  if (::stat(folder.c_str(), &about) != 0 || about.st_nlink > kMostThreads + 2) return 0;
  const std::unique_ptr<DIR, int (*)(DIR*)> tasks(::opendir(folder.c_str()), ::closedir);
  size_t workers = 0;
  for (size_t seen = 0; tasks && seen < kMostThreads; ++seen) {
    const dirent* entry = ::readdir(tasks.get());
    if (entry == nullptr) break;
    const auto tid = parse_number<pid_t>(entry->d_name);
    const auto stat = tid ? ThreadProbe(pid, *tid).stat() : std::nullopt;
    if (stat && is_kernel_worker(stat->flags)) ++workers;
  }
  return workers;
}

std::optional<Nanoseconds> parse_exec_start(std::string_view text) {
  // The first line has the thread's name, in which a program may put this key: the file's own is the last.
  constexpr std::string_view kKey = "\nse.exec_start";
  const size_t at = text.rfind(kKey);
  if (at == std::string_view::npos) return {};
  text.remove_prefix(at + kKey.size());
  text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
  if (!text.starts_with(':')) return {};
  text.remove_prefix(1);
  // Milliseconds with six decimal places.
  Nanoseconds whole = 0, part = 0;
  text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
  if (!take_number(text, whole) || whole < 0 || whole > std::numeric_limits<Nanoseconds>::max() / 2'000'000)
    return {};
  if (!text.starts_with('.')) return {};
  text.remove_prefix(1);
  const size_t left = text.size();
  if (!take_number(text, part) || part < 0 || left - text.size() != 6) return {};
  return whole * 1'000'000 + part;
}

std::optional<uint64_t> parse_switches(std::string_view text) {
  uint64_t sum = 0;
  for (const std::string_view key : {"\nvoluntary_ctxt_switches:\t", "\nnonvoluntary_ctxt_switches:\t"}) {
    const size_t at = text.find(key);
    if (at == std::string_view::npos) return {};
    std::string_view rest = text.substr(at + key.size());
    uint64_t count = 0;
    if (!take_field(rest, count)) return {};
    sum += count;
  }
  return sum;
}

ThreadProbe::ThreadProbe(pid_t pid, pid_t tid) : pid_(pid), tid_(tid) {
  // The kernel assigns the lowest free number. Half of the descriptors are reserved for perf events
  // (sampler/capture/event_budget.h).
  rlimit files{};
  ::getrlimit(RLIMIT_NOFILE, &files);
  most_kept_ = static_cast<int>(std::min<rlim_t>(files.rlim_cur, 1 << 30) / 8 * 5);
}

std::optional<std::string_view> ThreadProbe::read(Descriptor& descriptor, const char* file) {
  Descriptor once;
  if (!descriptor) {
    char path[64];
    std::snprintf(path, sizeof path, "/proc/%d/task/%d/%s", pid_, tid_, file);
    once = Descriptor(::open(path, O_RDONLY | O_CLOEXEC));
    if (!once) return {};
    if (once.get() < most_kept_) descriptor = std::move(once);
  }
  const ssize_t size = ::pread(descriptor ? descriptor.get() : once.get(), buffer_, sizeof buffer_, 0);
  if (size <= 0) return {};
  return std::string_view(buffer_, static_cast<size_t>(size));
}

std::optional<SchedStat> ThreadProbe::schedstat() {
  if (has_schedstat_) {
    errno = 0;
    const auto text = read(schedstat_, "schedstat");
    if (!text && errno != ENOENT) return {};
    const auto counted = text ? parse_schedstat(*text) : std::nullopt;
    if (text && (!counted || !counted->off())) return counted;
    has_schedstat_ = text.has_value();
  }
  // A thread that is gone gives ENOENT too; then there is no stat either.
  static const auto kTick = static_cast<uint64_t>(kSecond / ::sysconf(_SC_CLK_TCK));
  const auto used = stat();
  return used ? std::optional(SchedStat{used->ticks * kTick, 0, 0}) : std::nullopt;
}

std::optional<BlockedIn> ThreadProbe::blocked_in() {
  if (!syscall_readable_) return {};
  errno = 0;
  const auto text = read(syscall_, "syscall");
  if (!text && (errno == EPERM || errno == EACCES)) syscall_readable_ = false;
  const auto in = text ? parse_syscall(*text) : std::nullopt;
  if (in && !in->running && drift_wanted_) learn_drift();
  return in;
}

std::optional<ThreadStat> ThreadProbe::stat() {
  const auto text = read(stat_, "stat");
  return text ? parse_thread_stat(*text) : std::nullopt;
}

std::optional<Nanoseconds> ThreadProbe::left_cpu_at() {
  if (!has_sched_) return {};
  errno = 0;
  const auto text = read(sched_, "sched");
  if (!text && errno != ESRCH) has_sched_ = false;
  return text ? parse_exec_start(*text) : std::nullopt;
}

int ThreadProbe::cpu() {
  const auto now = stat();
  return now ? now->cpu : -1;
}

std::string ThreadProbe::kernel_name() {
  Descriptor comm;
  const auto text = read(comm, "comm");
  if (!text) return {};
  std::string name(*text);
  while (!name.empty() && name.back() == '\n') name.pop_back();
  return name;
}

std::optional<uint64_t> ThreadProbe::switches() {
  char path[64];
  std::snprintf(path, sizeof path, "/proc/%d/task/%d/status", pid_, tid_);
  const auto text = read_text(path);
  return text ? parse_switches(*text) : std::nullopt;
}

// It was asleep a moment ago, and still is if its counts have not changed.
void ThreadProbe::learn_drift() {
  const auto before = schedstat();
  const auto out = switches();
  const auto now = schedstat();
  if (!before || !out || !now || !unmoved(*before, *now)) return;
  drift_.was_asleep(*out, now->count);
  drift_wanted_ = false;
}

std::optional<bool> ThreadProbe::off_cpu_since(const SchedStat& since) {
  if (since.off()) return {};
  drift_wanted_ = true;
  const auto out = switches();
  if (!out) return {};
  if (drift_.is_on_cpu(*out, since.count)) return false;
  const auto now = drift_.is_off_cpu(*out, since.count) ? schedstat() : std::nullopt;
  return now && unmoved(since, *now) ? std::optional(true) : std::nullopt;
}

}  // namespace phlox::process
