#include "phlox/selection/other_pythons.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "phlox/base/text.h"
#include "phlox/process/process_state.h"
#include "phlox/process/process_tree.h"

namespace phlox::selection {
namespace {

// With thousands of children, one check judges only as many as it has time for; the next one continues.
constexpr Nanoseconds kLongestCheck = kSecond / 20;
constexpr size_t kMostGroups = 4, kMostIds = 6, kLongestCommand = 70;

std::string ids_of(const std::vector<const PythonProcess*>& processes) {
  std::string ids;
  for (size_t i = 0; i < std::min(processes.size(), kMostIds); ++i)
    ids += fmt::format("{}{}", i == 0 ? "" : ", ", processes[i]->pid);
  if (processes.size() > kMostIds) ids += fmt::format(" and {} more", processes.size() - kMostIds);
  return ids;
}

// "4713, 4714 (python3 worker.py); 4720 (python3 -c ...)": grouped by command line.
std::string listed(const std::vector<const PythonProcess*>& processes) {
  std::vector<std::vector<const PythonProcess*>> groups;
  for (const PythonProcess* process : processes) {
    const auto same = std::find_if(groups.begin(), groups.end(),
                                   [&](const auto& g) { return g[0]->command == process->command; });
    if (same == groups.end()) {
      groups.push_back({process});
    } else {
      same->push_back(process);
    }
  }
  std::string text;
  for (size_t i = 0; i < std::min(groups.size(), kMostGroups); ++i)
    text += fmt::format("{}{} ({})", i == 0 ? "" : "; ", ids_of(groups[i]),
                        shortened(groups[i][0]->command, kLongestCommand));
  if (groups.size() > kMostGroups) text += "; and others";
  return text;
}

// Between fork and exec a child of a Python looks like a Python: a new process is judged at the next check.
bool is_settled(const process::Stat& stat) {
  constexpr Nanoseconds kSettled = kSecond * 3 / 10;
  const auto ticks = static_cast<Nanoseconds>(std::max(1L, ::sysconf(_SC_CLK_TCK)));
  const Nanoseconds start = static_cast<Nanoseconds>(stat.start_ticks) * (kSecond / ticks);
  return clock_now(CLOCK_BOOTTIME) - start >= kSettled;
}

}  // namespace

void OtherPythons::check() {
  std::vector<pid_t> left;
  for (const pid_t pid : process::read_descendants(root_)) {
    if (!recorded_.contains(pid)) left.push_back(pid);
  }
  // Processes not yet judged come first.
  std::stable_partition(left.begin(), left.end(), [this](pid_t pid) { return !judged_.contains(pid); });
  const Nanoseconds until = clock_now() + kLongestCheck;
  size_t at = 0;
  for (; at < left.size() && clock_now() < until; ++at) {
    const auto stat = process::read_stat(left[at]);
    if (!stat || !is_settled(*stat)) continue;
    judged_.insert(left[at]);
    if (children_.contains({stat->start_ticks, left[at]})) continue;
    for (PythonProcess& p : find_pythons(std::span(&left[at], 1), recogniser_).found) {
      const Who who{p.start_ticks, p.pid};
      children_.insert_or_assign(who, std::move(p));
    }
  }
  unjudged_ = static_cast<size_t>(std::count_if(left.begin() + static_cast<ptrdiff_t>(at), left.end(),
                                                [this](pid_t pid) { return !judged_.contains(pid); }));
  find_siblings();
}

void OtherPythons::find_siblings() {
  if (searched_siblings_) return;
  searched_siblings_ = true;
  const auto state = process::read_process_state(root_);
  if (!state || state->status.parent <= 1 || state->command_line.empty()) return;
  parent_ = state->status.parent;
  std::vector<pid_t> siblings;
  for (const pid_t pid : process::read_children(state->status.parent)) {
    const auto other = pid == root_ ? Result<process::ProcessState>(fail(ErrorKind::system, ""))
                                    : process::read_process_state(pid);
    if (other && other->command_line == state->command_line) siblings.push_back(pid);
  }
  for (PythonProcess& p : find_pythons(siblings, recogniser_).found) {
    const Who who{p.start_ticks, p.pid};
    siblings_.insert_or_assign(who, std::move(p));
  }
}

std::string OtherPythons::children_words(const std::vector<const PythonProcess*>& children) const {
  return fmt::format(
      "{} child Python{} of process {}, not recorded: {}. What {} do{} is not in this recording, only "
      "the waiting for {}; {}",
      children.size(), children.size() == 1 ? "" : "s", root_, listed(children),
      children.size() == 1 ? "it" : "they", children.size() == 1 ? "es" : "",
      children.size() == 1 ? "it" : "them", advice_(children.back()->pid));
}

std::string OtherPythons::unjudged_words() const {
  if (unjudged_ == 0) return "";
  const bool one = unjudged_ == 1;
  return fmt::format("{} process{} that process {} started {} not recorded, and it is not known whether {}",
                     unjudged_, one ? "" : "es", root_, one ? "is" : "are",
                     one ? "it is a Python" : "they are Pythons");
}

std::string OtherPythons::sibling_words() const {
  std::vector<const PythonProcess*> others;
  for (const auto& [who, process] : siblings_) others.push_back(&process);
  return fmt::format(
      "process {} is one of {} similar children of one parent. The others are not recorded: {}. To record "
      "all of them: phlox record -p {}",
      root_, siblings_.size() + 1, listed(others), parent_);
}

std::vector<std::string> OtherPythons::news() {
  std::vector<std::string> lines;
  std::vector<const PythonProcess*> fresh;
  for (const auto& [who, process] : children_) {
    if (!recorded_.contains(process.pid) && said_.insert(who).second) fresh.push_back(&process);
  }
  if (!fresh.empty()) lines.push_back(children_words(fresh));
  if (!siblings_.empty() && !said_siblings_) lines.push_back(sibling_words());
  said_siblings_ = true;
  return lines;
}

std::string OtherPythons::summary() const {
  std::vector<const PythonProcess*> all;
  for (const auto& [who, process] : children_) {
    if (!recorded_.contains(process.pid)) all.push_back(&process);
  }
  std::string text = all.empty() ? "" : children_words(all);
  if (const std::string words = unjudged_words(); !words.empty()) text += (text.empty() ? "" : ". ") + words;
  if (!siblings_.empty()) text += (text.empty() ? "" : ". ") + sibling_words();
  return text;
}

}  // namespace phlox::selection
