#include "phlox/report/findings.h"

#include <fmt/format.h>
#include <tsl/robin_map.h>

#include <algorithm>
#include <map>
#include <utility>

#include "phlox/base/spread.h"
#include "phlox/profile/quality.h"
#include "phlox/profile/system_calls.h"
#include "phlox/report/table.h"
#include "phlox/report/waits.h"

namespace phlox::report {
namespace {

using profile::Profile;
using profile::ThreadId;

// Below these a fact is no news.
constexpr uint64_t kFewSamples = 10;   // and a fact of fewer is none
constexpr double kHotFunction = 0.15;  // of the CPU time
constexpr double kHotLine = 0.15;      // of the CPU time
constexpr double kGilWait = 0.05;      // of a thread's wall time
constexpr double kCpuWait = 0.05;
constexpr double kMostlyWaiting =
    0.5;  // of a thread's wall time, of a program that uses less than half a CPU
constexpr double kCollecting = 0.03;
constexpr double kImports = 0.05;
// Of a recording: most of next to nothing is nothing to act upon.
constexpr double kWorthSaying = 0.01;
// A thread seen for less is no thread to speak of.
constexpr double kThreadShare = 0.01;  // of the recording

double part(Nanoseconds of, Nanoseconds whole) {
  return whole > 0 ? double(of) / double(whole) : 0;
}

// Who held the GIL while `waiter` waited for it.
struct Holder {
  ThreadId thread;
  double share = 0;  // of the waiting
  profile::FrameId function;
};

Holder holder_of(const Profile& profile, ThreadId waiter, Nanoseconds waited) {
  struct Hold {
    Nanoseconds start, end;
    const profile::Sample* sample;
  };
  const profile::Thread& row = profile.thread(waiter);
  std::vector<Hold> holds;
  std::vector<std::pair<Nanoseconds, Nanoseconds>> waits;
  for (const profile::Sample& sample : profile.samples()) {
    const Nanoseconds end = sample.start + sample.wall;
    if (sample.thread == waiter) {
      if (sample.gil_state == profile::GilState::waits) waits.emplace_back(sample.start, end);
      continue;
    }
    if (sample.gil_state != profile::GilState::holds || !sample.thread ||
        sample.thread.value > profile.threads().size())
      continue;
    const profile::Thread& other = profile.thread(sample.thread);
    if (other.process == row.process && other.interpreter == row.interpreter)
      holds.push_back({sample.start, end, &sample});
  }
  std::sort(holds.begin(), holds.end(), [](const Hold& a, const Hold& b) { return a.start < b.start; });
  std::sort(waits.begin(), waits.end());
  // By thread and by its innermost function. Holds hardly overlap, so those before a wait need no second
  // look.
  std::map<uint32_t, Nanoseconds> threads;
  tsl::robin_map<uint64_t, Nanoseconds, Spread> frames;  // thread and frame
  size_t first = 0;
  for (const auto& [start, end] : waits) {
    while (first < holds.size() && holds[first].end <= start) ++first;
    for (size_t i = first; i < holds.size() && holds[i].start < end; ++i) {
      const Nanoseconds overlap = std::min(end, holds[i].end) - std::max(start, holds[i].start);
      if (overlap <= 0) continue;
      const profile::Sample& sample = *holds[i].sample;
      threads[sample.thread.value] += overlap;
      if (sample.stack && sample.stack.value <= profile.stacks().size())
        frames[uint64_t{sample.thread.value} << 32 | profile.stack(sample.stack).frame.value] += overlap;
    }
  }
  Holder holder;
  Nanoseconds most = 0;
  for (const auto& [thread, time] : threads) {
    if (time <= most) continue;
    most = time;
    holder.thread = ThreadId(thread);
  }
  holder.share = part(most, waited);
  Nanoseconds most_in_frame = 0;
  for (const auto& [key, time] : frames) {
    if (key >> 32 != holder.thread.value || time < most_in_frame) continue;
    // The table has no order: of equal ones the first.
    if (time == most_in_frame && holder.function && static_cast<uint32_t>(key) > holder.function.value)
      continue;
    most_in_frame = time;
    holder.function = profile::FrameId(static_cast<uint32_t>(key));
  }
  return holder;
}

class Findings {
 public:
  Findings(const Profile& profile, const profile::Choices& choices, const Analysis& analysis,
           const Report& report)
      : profile_(profile), choices_(choices), analysis_(analysis), report_(report) {}

  std::vector<Finding> all() && {
    quality();
    if (analysis_.samples < kFewSamples) {
      few_samples();
      return std::move(found_);
    }
    hot_functions();
    gil_waits();
    waiting();
    cpu_waits();
    collecting();
    imports();
    std::stable_sort(found_.begin(), found_.end(),
                     [](const Finding& a, const Finding& b) { return a.weight > b.weight; });
    return std::move(found_);
  }

 private:
  using Numbers = std::vector<std::pair<std::string, double>>;
  using Names = std::vector<std::pair<std::string, std::string>>;
  void add(std::string kind, double weight, std::string text, Numbers numbers, Names names = {}) {
    found_.push_back({std::move(kind), weight, std::move(text), std::move(numbers), std::move(names)});
  }
  // Weights of findings about one thread are measured by the recording, not by the thread.
  double of_recording(Nanoseconds time) const {
    return part(time, std::max<Nanoseconds>(report_.elapsed, 1));
  }
  bool is_short(const ThreadRow& thread) const { return of_recording(thread.wall) < kThreadShare; }

  void quality() {
    if (report_.warning.empty()) return;
    const auto quality = profile::summarize_quality(profile_);
    add("rejected", 1, report_.warning,
        {{"rejected_share", quality.rejected_share()}, {"rejected", double(quality.rejected)}});
  }

  void few_samples() {
    if (analysis_.samples == 0) return;
    add("few_samples", 1,
        fmt::format("{} say nothing about where time goes: record for longer, or with a higher rate",
                    analysis_.samples == 1 ? std::string("one sample")
                                           : fmt::format("{} samples", analysis_.samples)),
        {{"samples", double(analysis_.samples)}});
  }

  void hot_functions() {
    std::vector<const Entry*> entries;
    for (const Entry& entry : analysis_.functions) {
      if (part(entry.self_cpu, analysis_.cpu) >= kHotFunction && of_recording(entry.self_cpu) >= kWorthSaying)
        entries.push_back(&entry);
    }
    std::sort(entries.begin(), entries.end(),
              [](const Entry* a, const Entry* b) { return a->self_cpu > b->self_cpu; });
    for (const Entry* entry : entries) {
      const double share = part(entry->self_cpu, analysis_.cpu);
      const auto label = profile::function_label(profile_, entry->frame);
      std::string text =
          fmt::format("{} of the CPU time is spent in {} itself{}", share_words(share), plain(label.name),
                      label.file.empty() ? "" : " (" + location_words(label.file, label.line) + ")");
      Numbers numbers = {{"cpu_share", share}, {"cpu_ns", double(entry->self_cpu)}};
      const Entry* line = hottest_line(*entry);
      if (line != nullptr && part(line->self_cpu, analysis_.cpu) >= kHotLine) {
        const double line_share = part(line->self_cpu, analysis_.cpu);
        text += fmt::format(", {} in line {}", share_words(line_share), line->line);
        numbers.insert(numbers.end(), {{"line", double(line->line)}, {"line_cpu_share", line_share}});
      }
      add("hot_function", of_recording(entry->self_cpu), std::move(text), std::move(numbers),
          {{"function", label.whole_name()}, {"file", label.file}});
    }
  }

  // Of this function.
  const Entry* hottest_line(const Entry& function) const {
    const uint32_t wanted = analysis_.function_of[function.frame.value];
    const Entry* hottest = nullptr;
    for (const Entry& line : analysis_.lines) {
      if (analysis_.function_of[line.frame.value] != wanted) continue;
      if (hottest == nullptr || line.self_cpu > hottest->self_cpu) hottest = &line;
    }
    return hottest;
  }

  void gil_waits() {
    // The three that wait most: looking for the holder takes a walk over all samples.
    std::vector<const ThreadRow*> waiters;
    for (const ThreadRow& thread : report_.threads) {
      if (!is_short(thread) && part(thread.states.gil_waits, thread.wall) >= kGilWait)
        waiters.push_back(&thread);
    }
    std::sort(waiters.begin(), waiters.end(), [](const ThreadRow* a, const ThreadRow* b) {
      return a->states.gil_waits > b->states.gil_waits;
    });
    if (waiters.size() > 3) waiters.resize(3);
    // Who waits for the same function of the same thread is reported with the one that waits most.
    std::map<std::pair<uint32_t, uint32_t>, size_t> reported;
    for (const ThreadRow* thread : waiters) {
      const double share = part(thread->states.gil_waits, thread->wall);
      std::string text = fmt::format("{} of the wall time of {} is spent waiting for the GIL",
                                     share_words(share), plain(thread->name));
      Numbers numbers = {{"wall_share", share}, {"wall_ns", double(thread->states.gil_waits)}};
      Names names = {{"thread", thread->name}};
      const Holder holder = holder_of(profile_, thread->id, thread->states.gil_waits);
      const uint32_t function = holder.function.value < analysis_.function_of.size()
                                    ? analysis_.function_of[holder.function.value]
                                    : 0;
      const auto [known, fresh] = reported.try_emplace({holder.thread.value, function}, found_.size());
      if (!fresh) {
        found_[known->second].text +=
            fmt::format("; so is {} of {}'s", share_words(share), plain(thread->name));
        continue;
      }
      if (holder.thread && holder.share > 0) {
        const std::string name = profile::thread_label(profile_.thread(holder.thread));
        text += fmt::format(", held {} of that time by {}", share_words(std::min(1.0, holder.share)),
                            plain(name));
        numbers.emplace_back("holder_share", std::min(1.0, holder.share));
        names.emplace_back("holder", name);
        if (holder.function) {
          const auto label = profile::function_label(profile_, holder.function);
          text += fmt::format(", mostly in {}", plain(label.name));
          names.emplace_back("holder_function", label.name);
        }
      }
      add("gil_wait", of_recording(thread->states.gil_waits), std::move(text), std::move(numbers),
          std::move(names));
    }
  }

  void waiting() {
    if (report_.elapsed <= 0 || part(analysis_.cpu, report_.elapsed) >= kMostlyWaiting) return;
    // Of a program that mostly waits, the thread that matters is the one that works at all: the busiest.
    const ThreadRow* busiest = nullptr;
    for (const ThreadRow& thread : report_.threads) {
      if (!is_short(thread) && (busiest == nullptr || thread.cpu > busiest->cpu)) busiest = &thread;
    }
    if (busiest == nullptr || part(busiest->states.idle, busiest->wall) < kMostlyWaiting) return;
    const double share = part(busiest->states.idle, busiest->wall);
    std::string text = fmt::format(
        "the program waits more than it works: it used {} of a CPU, and {} was blocked {} of its time",
        share_words(part(analysis_.cpu, report_.elapsed)), plain(busiest->name), share_words(share));
    Names names = {{"thread", busiest->name}};
    for (const WaitRow& wait : find_waits(profile_, choices_, busiest->id, 1)) {
      // Stopped, or waiting for a page of memory.
      text += wait.kind == WaitKind::system_call && wait.what == profile::kNoSystemCall
                  ? fmt::format(", most of it outside any system call, in {}", plain(wait.name))
                  : fmt::format(", most of it in {} called by {}", wait.what, plain(wait.name));
      if (!wait.file.empty()) text += fmt::format(" ({})", location_words(wait.file, wait.line));
      names.insert(names.end(), {{"waits_for", wait.what}, {"function", wait.name}, {"file", wait.file}});
    }
    add("mostly_waiting", of_recording(busiest->states.idle), std::move(text),
        {{"cpu_of_elapsed", part(analysis_.cpu, report_.elapsed)},
         {"wall_share", share},
         {"wall_ns", double(busiest->states.idle)}},
        std::move(names));
  }

  void cpu_waits() {
    Nanoseconds runnable = 0, active = 0;
    for (const ThreadRow& thread : report_.threads) {
      runnable += thread.states.runnable;
      active += thread.states.runnable + thread.states.running;
    }
    const double share = part(runnable, active);
    if (share < kCpuWait || of_recording(runnable) < kCpuWait) return;
    add("cpu_wait", of_recording(runnable),
        fmt::format("threads that could run waited for a CPU {} of the time: the machine or the container's "
                    "quota is short of CPUs",
                    share_words(share)),
        {{"share", share}, {"wall_ns", double(runnable)}});
  }

  // Each process has a collector of its own, and they run side by side: no part of one length of time is
  // made of their sum.
  void collecting() {
    std::map<int32_t, Nanoseconds> by_process;
    Nanoseconds all = 0, active = 0;
    for (const ThreadRow& thread : report_.threads) {
      active += thread.states.running + thread.states.runnable;
      all += thread.states.collecting;
      if (thread.states.collecting > 0) by_process[thread.pid] += thread.states.collecting;
    }
    if (by_process.empty()) return;
    const auto& [pid, most] =
        *std::max_element(by_process.begin(), by_process.end(),
                          [](const auto& a, const auto& b) { return a.second < b.second; });
    const double share = of_recording(most), busy_share = std::min(1.0, part(all, active));
    std::string text = "the cyclic garbage collector ran for ";
    if (share >= kCollecting) {
      text += fmt::format("{} of the recording ({})", share_words(share), time_words(most));
      if (report_.processes_seen > 1) text += fmt::format(" in process {}", pid);
      if (by_process.size() > 1)
        text += fmt::format(", and for {} more in {} other{}", time_words(all - most), by_process.size() - 1,
                            by_process.size() == 2 ? "" : "s");
    } else if (by_process.size() > 1 && busy_share >= kCollecting && of_recording(all) >= kCollecting) {
      // Of many that are short-lived, or that hardly do anything.
      text += fmt::format("{} in {} processes, {} of the time that they worked", time_words(all),
                          by_process.size(), share_words(busy_share));
    } else {
      return;
    }
    add("garbage_collection", std::max(share, std::min(busy_share, of_recording(all))), std::move(text),
        {{"share", share},
         {"busy_share", busy_share},
         {"wall_ns", double(all)},
         {"processes", double(by_process.size())}});
  }

  void imports() {
    for (const Entry& entry : analysis_.functions) {
      const profile::Frame& frame = profile_.frame(entry.frame);
      if (frame.qualified_name != "_find_and_load" || frame.file.find("importlib") == std::string::npos)
        continue;
      if (entry.total.share < kImports) continue;
      add("imports", entry.total.share,
          fmt::format("{} of the {} goes into importing modules", share_words(entry.total.share),
                      plain(report_.weight_title)),
          {{"share", entry.total.share}, {"weight", double(entry.total.weight)}});
      return;
    }
  }

  const Profile& profile_;
  const profile::Choices& choices_;
  const Analysis& analysis_;
  const Report& report_;
  std::vector<Finding> found_;
};

}  // namespace

std::vector<Finding> find_findings(const Profile& profile, const profile::Choices& choices,
                                   const Analysis& analysis, const Report& report) {
  return Findings(profile, choices, analysis, report).all();
}

}  // namespace phlox::report
