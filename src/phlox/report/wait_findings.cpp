#include "phlox/report/wait_findings.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <utility>

#include "phlox/base/text.h"
#include "phlox/profile/unfinished.h"
#include "phlox/report/finding_limits.h"
#include "phlox/report/table.h"
#include "phlox/report/waits.h"
#include "phlox/view/system_calls.h"

namespace phlox::report {
namespace {

using profile::ThreadId;

// A thread that held it for less of the waiting is one of many; the table has them all.
constexpr double kHeldByOne = 0.25;
constexpr double kGilWait = 0.05;  // of a thread's wall time
// Of a thread's wall time, in a program that uses less than this part of a CPU.
constexpr double kMostlyWaiting = 0.5;
constexpr double kWorthSplitting = 0.1;  // of a thread's waiting

class GilFindings {
 public:
  GilFindings(const profile::Profile& profile, const Analysis& analysis, const Report& report,
              const std::vector<view::GilWaiter>& waiters)
      : profile_(profile), analysis_(analysis), report_(report), waiters_(waiters) {}

  std::vector<Finding> all() && {
    constexpr size_t kMost = 3;
    std::map<ThreadId, const ThreadRow*> threads;
    for (const ThreadRow& thread : report_.threads) threads[thread.id] = &thread;
    std::map<std::pair<uint32_t, uint32_t>, size_t> reported;
    size_t reported_waiters = 0;
    for (const view::GilWaiter& waiter : waiters_) {
      const auto row = threads.find(waiter.thread);
      if (row == threads.end() || is_short(report_, *row->second)) continue;
      const ThreadRow& thread = *row->second;
      const double share = time_share(waiter.wall, thread.wall);
      if (share < kGilWait || ++reported_waiters > kMost) continue;
      const bool one_held_it =
          !waiter.threads.empty() && time_share(waiter.threads.front().wall, waiter.wall) >= kHeldByOne;
      const ThreadId holder = one_held_it ? waiter.threads.front().thread : ThreadId();
      const uint32_t function = one_held_it ? function_held_in(waiter, holder) : 0;
      const auto [known, fresh] = reported.try_emplace({holder.value, function}, found_.size());
      if (fresh) {
        add_gil_wait(thread, waiter, share, one_held_it, function);
      } else {
        found_[known->second].text +=
            fmt::format("; {} spends {} in the same way", plain(thread.name), share_words(share));
      }
    }
    return std::move(found_);
  }

 private:
  // Where that thread held it longest: a row of analysis_.functions, counted from 1; 0: not known.
  uint32_t function_held_in(const view::GilWaiter& waiter, ThreadId holder) const {
    std::map<uint32_t, Nanoseconds> functions;
    for (const view::GilPlace& place : waiter.holders) {
      if (place.thread != holder || place.frame.value >= analysis_.function_of.size()) continue;
      if (const uint32_t function = analysis_.function_of[place.frame.value]; function != 0)
        functions[function] += place.wall;
    }
    const auto most = std::max_element(functions.begin(), functions.end(),
                                       [](const auto& a, const auto& b) { return a.second < b.second; });
    return most == functions.end() ? 0 : most->first;
  }

  void add_gil_wait(const ThreadRow& thread, const view::GilWaiter& waiter, double share, bool one_held_it,
                    uint32_t function) {
    std::string text = fmt::format("{} spends {} of its wall time waiting for the GIL", plain(thread.name),
                                   share_words(share));
    Numbers numbers = {{"wall_share", share}, {"wall_ns", double(waiter.wall)}};
    Names names = {{"thread", thread.name}};
    if (one_held_it) {
      const double held = time_share(waiter.threads.front().wall, waiter.wall);
      const std::string name = view::thread_label(profile_.thread(waiter.threads.front().thread));
      text += fmt::format(", which {} held for {} of that time", plain(name), share_words(held));
      numbers.emplace_back("holder_share", held);
      names.emplace_back("holder", name);
      if (function != 0) {
        const auto label = view::function_label(profile_, analysis_.functions[function - 1].frame);
        text += fmt::format(", mostly in {}", plain(label.name));
        names.emplace_back("holder_function", label.name);
      }
    }
    found_.push_back({"gil_wait", part_of_recording(report_, waiter.wall), std::move(text),
                      std::move(numbers), std::move(names)});
  }

  const profile::Profile& profile_;
  const Analysis& analysis_;
  const Report& report_;
  const std::vector<view::GilWaiter>& waiters_;
  std::vector<Finding> found_;
};

// "in recvfrom called by fetch (/app/app.py:9)"
std::string waited_words(const WaitRow& wait) {
  // The thread was stopped, or waited for a page of memory.
  std::string text =
      wait.kind == WaitKind::system_call && wait.what == view::kNoSystemCall
          ? fmt::format("outside any system call, in {}", plain(wait.name))
      : wait.kind == WaitKind::system_call && wait.what == view::kSystemCallNotRecorded
          ? fmt::format("in {}", plain(wait.name))
          : fmt::format("in {}{} called by {}", wait.what,
                        wait.wait_target.empty() ? "" : fmt::format(" ({})", plain(wait.wait_target)),
                        plain(wait.name));
  if (!wait.file.empty()) text += fmt::format(" ({})", location_words(wait.file, wait.line));
  if (!wait.called_from.empty())
    text += fmt::format(", called from {} ({})", plain(wait.called_from),
                        location_words(wait.called_from_file, wait.called_from_line));
  return text;
}

void add_wait(Names& names, const WaitRow& wait) {
  names.insert(names.end(), {{"waits_for", wait.what},
                             {"wait_target", wait.wait_target},
                             {"function", wait.name},
                             {"file", wait.file}});
  if (!wait.native.full.empty()) names.emplace_back("native_function", wait.native.full);
  if (!wait.called_from.empty()) names.emplace_back("called_from", wait.called_from);
}

// " (40.5 % with nothing to do; for 33.9 % that is not known)": parts of a thread's waiting; empty: hardly
// any.
std::string parts_words(const ThreadRow& thread, Nanoseconds for_work, Nanoseconds not_known) {
  const auto is_worth = [&](Nanoseconds wall) {
    return time_share(wall, thread.states.idle) >= kWorthSplitting;
  };
  const std::string idle = share_words(time_share(for_work, thread.wall));
  const std::string unknown = share_words(time_share(not_known, thread.wall));
  if (is_worth(for_work) && is_worth(not_known))
    return fmt::format(" ({} with nothing to do; for {} that is not known)", idle, unknown);
  if (is_worth(for_work)) return fmt::format(" ({} with nothing to do)", idle);
  if (is_worth(not_known))
    return fmt::format(" (for {} it is not known whether it had something to do)", unknown);
  return {};
}

// A server without requests, a loop without events: nothing is slow, so no place is named.
Finding idle(const Analysis& analysis, const Report& report, const ThreadRow& busiest, Nanoseconds for_work) {
  const double share = time_share(for_work, busiest.wall);
  const double cpu = time_share(analysis.cpu, report.elapsed);
  return {"mostly_idle",
          part_of_recording(report, for_work),
          fmt::format("{} had nothing to do for {} of its time; the program used {} of a CPU",
                      plain(busiest.name), share_words(share), share_words(cpu)),
          {{"cpu_of_elapsed", cpu}, {"wall_share", share}, {"wall_ns", double(for_work)}},
          {{"thread", busiest.name}}};
}

}  // namespace

std::vector<Finding> gil_findings(const profile::Profile& profile, const Analysis& analysis,
                                  const Report& report, const std::vector<view::GilWaiter>& waiters) {
  return GilFindings(profile, analysis, report, waiters).all();
}

std::optional<Finding> waiting_finding(const profile::Profile& profile, const view::Choices& choices,
                                       const Analysis& analysis, const Report& report) {
  if (report.elapsed <= 0 || time_share(analysis.cpu, report.elapsed) >= kMostlyWaiting) return {};
  // Threads that are missing from the recording may be the ones that work.
  if (profile.meta().contains(std::string(profile::kCouldNotBeRead))) return {};
  // If a program mostly waits, the thread that matters is the one that works at all: the busiest.
  const ThreadRow* busiest = nullptr;
  for (const ThreadRow& thread : report.threads) {
    if (!is_short(report, thread) && (busiest == nullptr || thread.cpu > busiest->cpu)) busiest = &thread;
  }
  if (busiest == nullptr || time_share(busiest->states.idle, busiest->wall) < kMostlyWaiting) return {};
  const std::vector<WaitRow> waits =
      find_waits(profile, choices, busiest->id, std::numeric_limits<size_t>::max());
  Nanoseconds for_work = 0, not_known = 0;
  for (const WaitRow& wait : waits) {
    for_work += wait.for_work;
    not_known += wait.not_known;
  }
  if (2 * for_work > busiest->states.idle) return idle(analysis, report, *busiest, for_work);
  const double share = time_share(busiest->states.idle, busiest->wall);
  std::string text = fmt::format(
      "the program waits more than it works: it used {} of a CPU, and {} was blocked {} of its time",
      share_words(time_share(analysis.cpu, report.elapsed)), plain(busiest->name), share_words(share));
  text += parts_words(*busiest, for_work, not_known);
  Names names = {{"thread", busiest->name}};
  const auto longest = std::find_if(waits.begin(), waits.end(),
                                    [](const WaitRow& wait) { return 2 * wait.for_work <= wait.wall; });
  // A wait whose stack was not read has no place to name.
  if (longest != waits.end() && longest->has_place) {
    text +=
        fmt::format(", {} {}", 2 * longest->wall > busiest->states.idle ? "most of it" : "the longest part",
                    waited_words(*longest));
    add_wait(names, *longest);
  }
  return Finding{"mostly_waiting",
                 part_of_recording(report, busiest->states.idle),
                 std::move(text),
                 {{"cpu_of_elapsed", time_share(analysis.cpu, report.elapsed)},
                  {"wall_share", share},
                  {"wall_ns", double(busiest->states.idle)}},
                 std::move(names)};
}

}  // namespace phlox::report
