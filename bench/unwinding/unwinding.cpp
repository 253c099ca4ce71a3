// Frames against libdwfl's on the same captured bytes: stops one running thread of a process at moments of
// chance, and says how often both find the same return addresses, all of them.
//
//   unwinding PID SAMPLES      one JSON object on standard output, examples of what differs on standard error
#include <dirent.h>
#include <elf.h>
#include <fmt/format.h>
#include <poll.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "phlox/target/thread_probe.h"
#include "phlox/unwind/unwinder.h"
#include "support/dwfl_reference.h"
#include "support/stopped_thread.h"

namespace {

using namespace phlox;

constexpr size_t kStack = 256 * 1024;
constexpr size_t kExamples = 10;

// Those that run or wait for a CPU; everybody when nobody does.
std::vector<pid_t> threads_of(pid_t pid) {
  std::vector<pid_t> all, running;
  DIR* directory = ::opendir(fmt::format("/proc/{}/task", pid).c_str());
  if (directory == nullptr) return all;
  while (const dirent* entry = ::readdir(directory)) {
    const auto tid = static_cast<pid_t>(std::strtol(entry->d_name, nullptr, 10));
    if (tid <= 0) continue;
    all.push_back(tid);
    const auto stat = target::ThreadProbe(pid, tid).stat();
    if (stat && stat->state == 'R') running.push_back(tid);
  }
  ::closedir(directory);
  return running.empty() ? all : running;
}

struct Library {
  size_t samples = 0, equal = 0;  // with a frame in it
};

class Comparison {
 public:
  explicit Comparison(pid_t pid)
      : pid_(pid),
        tables_(pid),
        reference_(pid),
        unwinder_(tables_.map(), EM_X86_64, [this](uint32_t m) { return tables_.table_of(m); }) {}
  bool ok() const { return reference_.ok(); }

  bool take() {
    const std::vector<pid_t> candidates = threads_of(pid_);
    if (candidates.empty()) return false;
    const pid_t tid = candidates[random_() % candidates.size()];
    auto& thread = threads_[tid];
    if (!thread) thread = std::make_unique<test::StoppedThread>(tid);
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

  size_t samples() const { return samples_; }

  std::string json() const {
    std::string text = fmt::format(
        R"({{"samples": {}, "equal": {}, "whole": {}, "said": {}, "frames": {}, "ours_ns": {}, "theirs_ns": {}, "libraries": {{)",
        samples_, equal_, whole_, said_, frames_, ours_ns_, theirs_ns_);
    const char* comma = "";
    for (const auto& [path, library] : libraries_) {
      text += fmt::format(R"({}"{}": [{}, {}])", comma, path, library.samples, library.equal);
      comma = ", ";
    }
    return text + "}}\n";
  }

 private:
  void compare(const test::StoppedThread& thread) {
    using Clock = std::chrono::steady_clock;
    unwind::UnwindInput input;
    input.registers = thread.registers();
    input.stack_start = thread.stack_start();
    input.stack = thread.stack();
    const auto start = Clock::now();
    unwinder_.unwind(input, stack_);
    const auto between = Clock::now();
    const std::vector<uint64_t> theirs = reference_.pcs(thread);
    ours_ns_ += (between - start).count();
    theirs_ns_ += (Clock::now() - between).count();
    std::vector<uint64_t> ours;
    std::set<std::string> met;
    for (const auto& frame : stack_.frames) {
      ours.push_back(frame.pc.value);
      if (frame.module != unwind::kNoModule) met.insert(tables_.path(frame.module));
    }
    const bool whole = stack_.end == unwind::StackEnd::reached_end, same = ours == theirs;
    ++samples_;
    equal_ += same;
    whole_ += whole;
    frames_ += ours.size();
    // Not whole, and said so; true as far as it goes.
    said_ += !same && !whole && ours.size() < theirs.size() &&
             std::equal(ours.begin(), ours.end(), theirs.begin());
    for (const std::string& path : met) {
      Library& library = libraries_[path];
      ++library.samples;
      library.equal += same;
    }
    if ((!same || !whole) && examples_++ < kExamples) explain(ours, theirs);
  }

  std::string place(uint64_t pc) const {
    const auto* entry = tables_.map().find(RemoteAddress(pc));
    if (entry == nullptr || entry->module == unwind::kNoModule) return fmt::format("{:x}", pc);
    return fmt::format("{} {:x}", tables_.path(entry->module), pc - entry->bias);
  }

  void explain(const std::vector<uint64_t>& ours, const std::vector<uint64_t>& theirs) const {
    size_t at = 0;
    while (at < ours.size() && at < theirs.size() && ours[at] == theirs[at]) ++at;
    std::string text = fmt::format("{} at frame {}: ours has {} (end {}), libdwfl {}\n",
                                   ours == theirs ? "both end" : "differs", at, ours.size(),
                                   static_cast<int>(stack_.end), theirs.size());
    if (at > 0) text += "  last one alike    " + place(ours[at - 1]) + "\n";
    if (at < ours.size()) text += "  ours              " + place(ours[at]) + "\n";
    if (at < theirs.size()) text += "  libdwfl           " + place(theirs[at]) + "\n";
    std::fputs(text.c_str(), stderr);
  }

  pid_t pid_;
  test::TargetTables tables_;
  test::DwflReference reference_;
  unwind::Unwinder unwinder_;
  unwind::NativeStack stack_;
  std::map<pid_t, std::unique_ptr<test::StoppedThread>> threads_;
  std::map<std::string, Library> libraries_;
  std::mt19937 random_{7};
  size_t samples_ = 0, equal_ = 0, whole_ = 0, said_ = 0, frames_ = 0, examples_ = 0;
  int64_t ours_ns_ = 0, theirs_ns_ = 0;
};

}  // namespace

int main(int count, char** words) {
  if (count != 3) {
    std::fputs("unwinding PID SAMPLES\n", stderr);
    return 2;
  }
  Comparison comparison(static_cast<pid_t>(std::strtol(words[1], nullptr, 10)));
  const size_t wanted = std::strtoul(words[2], nullptr, 10);
  if (!comparison.ok()) {
    std::fputs("unwinding: no such process, or no right to look at it\n", stderr);
    return 1;
  }
  while (comparison.samples() < wanted && comparison.take()) {
  }
  std::fputs(comparison.json().c_str(), stdout);
  return comparison.samples() == wanted ? 0 : 1;
}
