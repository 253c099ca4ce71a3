#include "support/frame_comparison.h"

#include <dirent.h>
#include <elf.h>
#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <set>

#include "phlox/process/thread_probe.h"
#include "phlox/unwind/arch/this_machine.h"

namespace phlox::test {
namespace {

constexpr size_t kStack = 256 * 1024;
constexpr size_t kExamples = 10;

// Threads that run or wait for a CPU; all threads if none does.
std::vector<pid_t> threads_of(pid_t pid) {
  std::vector<pid_t> all, running;
  DIR* directory = ::opendir(fmt::format("/proc/{}/task", pid).c_str());
  if (directory == nullptr) return all;
  while (const dirent* entry = ::readdir(directory)) {
    const auto tid = static_cast<pid_t>(std::strtol(entry->d_name, nullptr, 10));
    if (tid <= 0) continue;
    all.push_back(tid);
    const auto stat = process::ThreadProbe(pid, tid).stat();
    if (stat && stat->state == 'R') running.push_back(tid);
  }
  ::closedir(directory);
  return running.empty() ? all : running;
}

}  // namespace

bool same_frames(const std::vector<unwind::NativeFrame>& ours, const std::vector<uint64_t>& theirs) {
  const auto by_code = std::find_if(ours.begin(), ours.end(), [](const unwind::NativeFrame& f) {
    return f.found_by == unwind::FoundBy::code;
  });
  const auto before_code = static_cast<size_t>(by_code - ours.begin());
  if (by_code == ours.end() ? theirs.size() != before_code : theirs.size() < before_code) return false;
  return std::equal(ours.begin(), by_code, theirs.begin(),
                    [](const unwind::NativeFrame& f, uint64_t pc) { return f.pc.value == pc; });
}

FrameComparison::FrameComparison(pid_t pid)
    : pid_(pid),
      tables_(pid),
      reference_(pid),
      unwinder_(
          tables_.map(), unwind::kThisMachine, [this](uint32_t m) { return tables_.table_of(m); },
          [this](uint32_t m) { return tables_.code_of(m); }) {}

bool FrameComparison::take() {
  const std::vector<pid_t> candidates = threads_of(pid_);
  if (candidates.empty()) return false;
  const pid_t tid = candidates[random_() % candidates.size()];
  auto& thread = threads_[tid];
  if (!thread) thread = std::make_unique<StoppedThread>(tid);
  const timespec pause{0, static_cast<long>(random_() % 2'000'000)};
  ::ppoll(nullptr, 0, &pause, nullptr);
  if (!thread->attached() || !thread->stop(kStack)) {
    threads_.erase(tid);
    return true;
  }
  thread->resume();
  compare(*thread);
  return true;
}

void FrameComparison::compare(const StoppedThread& thread) {
  using Clock = std::chrono::steady_clock;
  unwind::UnwindInput input;
  input.registers = thread.registers();
  input.stack_start = thread.stack_start();
  input.stack = thread.stack();
  input.read_code = [this](RemoteAddress at, std::span<std::byte> into) {
    return tables_.read_code(at, into);
  };
  const auto start = Clock::now();
  unwinder_.unwind(input, stack_);
  const auto between = Clock::now();
  const std::vector<uint64_t> theirs = reference_.pcs(thread);
  numbers_.ours_ns += (between - start).count();
  numbers_.theirs_ns += (Clock::now() - between).count();
  std::vector<uint64_t> ours;
  std::set<std::string> met;
  for (const auto& frame : stack_.frames) {
    ours.push_back(frame.pc.value);
    if (frame.module != unwind::kNoModule) met.insert(tables_.path(frame.module));
  }
  const bool whole = stack_.end == unwind::StackEnd::reached_end, same = same_frames(stack_.frames, theirs);
  ++numbers_.samples;
  numbers_.equal += same;
  numbers_.whole += whole;
  numbers_.frames += ours.size();
  numbers_.said +=
      !same && !whole && ours.size() < theirs.size() && std::equal(ours.begin(), ours.end(), theirs.begin());
  for (const std::string& path : met) {
    Library& library = numbers_.libraries[path];
    ++library.samples;
    library.equal += same;
  }
  if ((!same || !whole) && examples_.size() < kExamples) examples_.push_back(explain(ours, theirs));
}

std::string FrameComparison::place(uint64_t pc) const {
  const auto* entry = tables_.map().find(RemoteAddress(pc));
  if (entry == nullptr || entry->module == unwind::kNoModule) return fmt::format("{:x}", pc);
  return fmt::format("{} {:x}", tables_.path(entry->module), pc - entry->bias);
}

std::string FrameComparison::explain(const std::vector<uint64_t>& ours,
                                     const std::vector<uint64_t>& theirs) const {
  size_t at = 0;
  while (at < ours.size() && at < theirs.size() && ours[at] == theirs[at]) ++at;
  std::string text = fmt::format("{} at frame {}: ours has {} (end {}), libdwfl {}\n",
                                 ours == theirs ? "both end" : "differs", at, ours.size(),
                                 static_cast<int>(stack_.end), theirs.size());
  if (at > 0) text += "  last one alike    " + place(ours[at - 1]) + "\n";
  if (at < ours.size()) text += "  ours              " + place(ours[at]) + "\n";
  if (at < theirs.size()) text += "  libdwfl           " + place(theirs[at]) + "\n";
  return text;
}

}  // namespace phlox::test
