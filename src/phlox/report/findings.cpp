#include "phlox/report/findings.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <utility>

#include "phlox/base/text.h"
#include "phlox/profile/native_frames.h"
#include "phlox/profile/quality.h"
#include "phlox/profile/system_calls.h"
#include "phlox/profile/unfinished.h"
#include "phlox/profile/whole_waits.h"
#include "phlox/report/cpu_words.h"
#include "phlox/report/endpoint_rows.h"
#include "phlox/report/estimate.h"
#include "phlox/report/signal_rows.h"
#include "phlox/report/table.h"
#include "phlox/report/task_findings.h"
#include "phlox/report/waits.h"

namespace phlox::report {
namespace {

using profile::Profile;
using profile::ThreadId;

// Facts below these limits are not reported.
constexpr uint64_t kFewSamples = 10;   // fewer prove nothing
constexpr double kHotFunction = 0.15;  // of the CPU time
constexpr double kHotLine = 0.15;      // of the CPU time
// A thread that held it for less of the waiting is one of many; the table has them all.
constexpr double kHeldByOne = 0.25;
constexpr double kGilWait = 0.05;  // of a thread's wall time
constexpr double kCpuWait = 0.05;
constexpr double kLoopBlocked = 0.02;  // of the loop's time
constexpr double kMostlyWaiting =
    0.5;  // of a thread's wall time, of a program that uses less than half a CPU
constexpr double kCollecting = 0.03;
constexpr double kDescendants = 0.1;  // of one CPU
constexpr double kImports = 0.05;
// Part of a recording: the largest part of almost nothing is not worth reporting.
constexpr double kWorthSaying = 0.01;
constexpr double kWorthSplitting = 0.1;  // of a thread's waiting
// A thread seen for less is not reported.
constexpr double kThreadShare = 0.01;  // of the recording

class Findings {
 public:
  Findings(const Profile& profile, const profile::Choices& choices, const Analysis& analysis,
           const Report& report, const std::vector<profile::GilWaiter>& gil_waiters,
           const profile::TaskRows* tasks)
      : profile_(profile),
        choices_(choices),
        analysis_(analysis),
        report_(report),
        gil_waiters_(gil_waiters),
        tasks_(tasks) {}

  std::vector<Finding> all() && {
    quality();
    if (tasks_ != nullptr && is_of_all()) {
      for (Finding& finding : task_findings(profile_, *tasks_)) found_.push_back(std::move(finding));
    }
    not_examined();
    signals();
    // Few samples say little about where CPU time goes, but waits that the kernel timed are complete.
    const bool exact = profile::waits_are_exact(profile_);
    const bool are_few = analysis_.samples < kFewSamples;
    if (are_few) few_samples(exact);
    if (!are_few || exact) {
      gil_waits();
      waiting();
      cpu_waits();
      loops();
      pools();
      if (auto finding = endpoint_finding(report_)) found_.push_back(*std::move(finding));
    }
    if (!are_few) {
      hot_functions();
      collecting();
      imports();
    }
    std::stable_sort(found_.begin(), found_.end(),
                     [](const Finding& a, const Finding& b) { return a.weight > b.weight; });
    return std::move(found_);
  }

 private:
  void add(std::string kind, double weight, std::string text, Numbers numbers, Names names = {}) {
    found_.push_back({std::move(kind), weight, std::move(text), std::move(numbers), std::move(names)});
  }
  // The weight of a finding about one thread is its part of the recording, not of the thread.
  double of_recording(Nanoseconds time) const {
    return time_share(time, std::max<Nanoseconds>(report_.elapsed, 1));
  }
  bool is_short(const ThreadRow& thread) const { return of_recording(thread.wall) < kThreadShare; }

  void quality() {
    if (report_.warning.empty()) return;
    const auto quality = profile::summarize_quality(profile_);
    add("rejected", 1, report_.warning,
        {{"rejected_share", quality.rejected_share()}, {"rejected", double(quality.rejected)}});
  }

  // One for each signal; of many processes that were ended alike, the first.
  void signals() {
    std::map<std::pair<int, std::string>, size_t> alike;
    for (const SignalRow& row : report_.signals) {
      if (is_unexpected_end(row)) ++alike[{row.signal.number, row.from.name}];
    }
    for (const SignalRow& row : report_.signals) {
      if (!is_unexpected_end(row)) continue;
      const auto found = alike.find({row.signal.number, row.from.name});
      if (found == alike.end()) continue;
      std::string text = signal_sentence(row);
      if (found->second > 1) text += fmt::format("; {} more like it", found->second - 1);
      add("signal", 1, std::move(text),
          {{"pid", double(row.pid)},
           {"signal", double(row.signal.number)},
           {"after_ns", double(row.after)},
           {"alike", double(found->second)}},
          {{"name", row.name}, {"sender", row.signal.sender}, {"function", row.from.name}});
      alike.erase(found);
    }
  }

  void few_samples(bool waits_are_exact) {
    if (analysis_.samples == 0) return;
    const double used = of_recording(analysis_.cpu);
    if (waits_are_exact && used < kWorthSaying) return;
    add("few_samples", waits_are_exact ? used : 1,
        fmt::format("{} nothing about where {} goes: record for longer, or with a higher rate",
                    analysis_.samples == 1 ? std::string("one sample says")
                                           : fmt::format("{} samples say", analysis_.samples),
                    waits_are_exact ? "CPU time" : "time"),
        {{"samples", double(analysis_.samples)}});
  }

  // If there is no Python function, the native one is named.
  int64_t cpu_of(const Entry& entry) const {
    return profile_.frame(entry.frame).kind == profile::FrameKind::python ? entry.self_cpu : entry.alone_cpu;
  }

  // The lower end of its interval must be at least half of the share: a few long runs between two samples may
  // all be in one place by chance.
  bool is_proved(double share) const {
    const double cpu = double(analysis_.cpu);
    return analysis_.cpu_squares > 0 && least_share(share, cpu * cpu / analysis_.cpu_squares) >= share / 2;
  }

  void hot_functions() {
    uint64_t on_cpu = 0;
    for (const ThreadRow& thread : report_.threads) on_cpu += thread.on_cpu;
    if (on_cpu < kFewSamples) return;
    std::vector<const Entry*> entries;
    for (const Entry& entry : analysis_.functions) {
      if (time_share(cpu_of(entry), analysis_.cpu) >= kHotFunction &&
          of_recording(cpu_of(entry)) >= kWorthSaying)
        entries.push_back(&entry);
    }
    std::sort(entries.begin(), entries.end(),
              [&](const Entry* a, const Entry* b) { return cpu_of(*a) > cpu_of(*b); });
    for (const Entry* entry : entries) {
      const double share = time_share(cpu_of(*entry), analysis_.cpu);
      if (!is_proved(share)) continue;
      const auto label = profile::function_label(profile_, entry->frame);
      std::string text =
          fmt::format("{} of the CPU time is spent in {} itself{}", share_words(share), plain(label.name),
                      label.file.empty() ? "" : " (" + location_words(label.file, label.line) + ")");
      Numbers numbers = {{"cpu_share", share}, {"cpu_ns", double(cpu_of(*entry))}};
      Names names = {{"function", label.whole_name()}, {"file", label.file}};
      const Entry* line = hottest_line(*entry);
      const double line_share = line != nullptr ? time_share(cpu_of(*line), analysis_.cpu) : 0;
      const bool is_line = line_share >= kHotLine && is_proved(line_share);
      if (is_line) {
        text += fmt::format(", {} in line {}", share_words(line_share), line->line);
        numbers.insert(numbers.end(), {{"line", double(line->line)}, {"line_cpu_share", line_share}});
      }
      if (const CodeBeneath& code = is_line ? line->code : entry->code; !code.library.empty()) {
        text += fmt::format("; {} of the CPU time {} is in C code of {}: --native shows it",
                            share_words(code.share), is_line ? "on this line" : "in this function",
                            plain(code.library));
        numbers.emplace_back("c_code_share", code.share);
        names.emplace_back("c_code_module", code.library);
      }
      if (entry->foreign * 2 > entry->self.weight) add_native(*entry, text, names);
      add("hot_function", of_recording(cpu_of(*entry)), std::move(text), std::move(numbers),
          std::move(names));
    }
  }

  // If most of the function's own time is not the interpreter's.
  void add_native(const Entry& entry, std::string& text, Names& names) const {
    const profile::FrameRole role =
        entry.native ? profile_.frame(entry.native).role : profile::FrameRole::none;
    if (!entry.native || role == profile::kInterpreterCode) return;
    const NativeBeneath native = native_beneath(profile_, entry.native);
    text += fmt::format("; {} of its time is in native code, {} in {}{}",
                        share_words(time_share(entry.foreign, entry.self.weight)),
                        share_words(time_share(entry.native_weight, entry.self.weight)),
                        fitted_name(plain(native.name), kWidestName),
                        native.module.empty() ? "" : " (" + plain(native.module) + ")");
    names.insert(names.end(), {{"native_function", native.full}, {"native_module", native.module}});
  }

  // The hottest line of this function.
  const Entry* hottest_line(const Entry& function) const {
    const uint32_t wanted = analysis_.function_of[function.frame.value];
    const Entry* hottest = nullptr;
    for (const Entry& line : analysis_.lines) {
      if (analysis_.function_of[line.frame.value] != wanted) continue;
      if (hottest == nullptr || cpu_of(line) > cpu_of(*hottest)) hottest = &line;
    }
    return hottest;
  }

  // Where that thread held it longest: a row of analysis_.functions, counted from 1; 0: not known.
  uint32_t function_held_in(const profile::GilWaiter& waiter, ThreadId holder) const {
    std::map<uint32_t, Nanoseconds> functions;
    for (const profile::GilPlace& place : waiter.holders) {
      if (place.thread != holder || place.frame.value >= analysis_.function_of.size()) continue;
      if (const uint32_t function = analysis_.function_of[place.frame.value]; function != 0)
        functions[function] += place.wall;
    }
    const auto most = std::max_element(functions.begin(), functions.end(),
                                       [](const auto& a, const auto& b) { return a.second < b.second; });
    return most == functions.end() ? 0 : most->first;
  }

  // Reports the three threads that wait longest. A thread that waits for the same function of the same thread
  // as an earlier one is added to that finding.
  void gil_waits() {
    constexpr size_t kMost = 3;
    std::map<ThreadId, const ThreadRow*> threads;
    for (const ThreadRow& thread : report_.threads) threads[thread.id] = &thread;
    std::map<std::pair<uint32_t, uint32_t>, size_t> reported;
    size_t waiters = 0;
    for (const profile::GilWaiter& waiter : gil_waiters_) {
      const auto row = threads.find(waiter.thread);
      if (row == threads.end() || is_short(*row->second)) continue;
      const ThreadRow& thread = *row->second;
      const double share = time_share(waiter.wall, thread.wall);
      if (share < kGilWait || ++waiters > kMost) continue;
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
  }

  void add_gil_wait(const ThreadRow& thread, const profile::GilWaiter& waiter, double share, bool one_held_it,
                    uint32_t function) {
    std::string text = fmt::format("{} spends {} of its wall time waiting for the GIL", plain(thread.name),
                                   share_words(share));
    Numbers numbers = {{"wall_share", share}, {"wall_ns", double(waiter.wall)}};
    Names names = {{"thread", thread.name}};
    if (one_held_it) {
      const double held = time_share(waiter.threads.front().wall, waiter.wall);
      const std::string name = profile::thread_label(profile_.thread(waiter.threads.front().thread));
      text += fmt::format(", which {} held for {} of that time", plain(name), share_words(held));
      numbers.emplace_back("holder_share", held);
      names.emplace_back("holder", name);
      if (function != 0) {
        const auto label = profile::function_label(profile_, analysis_.functions[function - 1].frame);
        text += fmt::format(", mostly in {}", plain(label.name));
        names.emplace_back("holder_function", label.name);
      }
    }
    add("gil_wait", of_recording(waiter.wall), std::move(text), std::move(numbers), std::move(names));
  }

  // "in recvfrom called by fetch (/app/app.py:9)"
  static std::string waited_words(const WaitRow& wait) {
    // The thread was stopped, or waited for a page of memory.
    std::string text =
        wait.kind == WaitKind::system_call && wait.what == profile::kNoSystemCall
            ? fmt::format("outside any system call, in {}", plain(wait.name))
        : wait.kind == WaitKind::system_call && wait.what == profile::kSystemCallNotRecorded
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

  static void add_wait(Names& names, const WaitRow& wait) {
    names.insert(names.end(), {{"waits_for", wait.what},
                               {"awaited", wait.wait_target},
                               {"function", wait.name},
                               {"file", wait.file}});
    if (!wait.native.full.empty()) names.emplace_back("native_function", wait.native.full);
    if (!wait.called_from.empty()) names.emplace_back("called_from", wait.called_from);
  }

  // " (40.5 % with nothing to do; for 33.9 % that is not known)": parts of a thread's waiting; empty: hardly
  // any.
  static std::string parts_words(const ThreadRow& thread, Nanoseconds for_work, Nanoseconds not_known) {
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
  void idle(const ThreadRow& busiest, Nanoseconds for_work) {
    const double share = time_share(for_work, busiest.wall);
    const double cpu = time_share(analysis_.cpu, report_.elapsed);
    add("mostly_idle", of_recording(for_work),
        fmt::format("{} had nothing to do for {} of its time; the program used {} of a CPU",
                    plain(busiest.name), share_words(share), share_words(cpu)),
        {{"cpu_of_elapsed", cpu}, {"wall_share", share}, {"wall_ns", double(for_work)}},
        {{"thread", busiest.name}});
  }

  void waiting() {
    if (report_.elapsed <= 0 || time_share(analysis_.cpu, report_.elapsed) >= kMostlyWaiting) return;
    // Threads that are missing from the recording may be the ones that work.
    if (profile_.meta().contains(std::string(profile::kCouldNotBeRead))) return;
    // If a program mostly waits, the thread that matters is the one that works at all: the busiest.
    const ThreadRow* busiest = nullptr;
    for (const ThreadRow& thread : report_.threads) {
      if (!is_short(thread) && (busiest == nullptr || thread.cpu > busiest->cpu)) busiest = &thread;
    }
    if (busiest == nullptr || time_share(busiest->states.idle, busiest->wall) < kMostlyWaiting) return;
    const std::vector<WaitRow> waits =
        find_waits(profile_, choices_, busiest->id, std::numeric_limits<size_t>::max());
    Nanoseconds for_work = 0, not_known = 0;
    for (const WaitRow& wait : waits) {
      for_work += wait.for_work;
      not_known += wait.not_known;
    }
    if (2 * for_work > busiest->states.idle) return idle(*busiest, for_work);
    const double share = time_share(busiest->states.idle, busiest->wall);
    std::string text = fmt::format(
        "the program waits more than it works: it used {} of a CPU, and {} was blocked {} of its time",
        share_words(time_share(analysis_.cpu, report_.elapsed)), plain(busiest->name), share_words(share));
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
    add("mostly_waiting", of_recording(busiest->states.idle), std::move(text),
        {{"cpu_of_elapsed", time_share(analysis_.cpu, report_.elapsed)},
         {"wall_share", share},
         {"wall_ns", double(busiest->states.idle)}},
        std::move(names));
  }

  // Only for the whole recording: it is not known for a part.
  bool is_of_all() const {
    return choices_.from == 0 && choices_.to == std::numeric_limits<Nanoseconds>::max() && !choices_.pid &&
           !choices_.thread_regex && !choices_.label_regex && !choices_.endpoint_regex;
  }

  void not_examined() {
    const Nanoseconds used = used_by_descendants(report_);
    if (!is_of_all() || report_.elapsed <= 0 || of_recording(used) < kDescendants) return;
    add("other_processes", of_recording(used),
        fmt::format(
            "processes that it started used {} of CPU time, {:.2f} CPUs, and are not in the recording: {}",
            time_words(used), of_recording(used), descendant_words(report_)),
        {{"cpu_ns", double(used)}, {"cpus", of_recording(used)}},
        {{"command_line", profile::descendant_groups(report_.not_examined).front().command_line}});
  }

  // While a callback waits or takes long, nothing else can run in the loop.
  void loops() {
    for (const LoopRow& row : report_.loops) {
      const profile::LoopTime& loop = row.time;
      const double share = time_share(loop.blocked, loop.wall);
      const Nanoseconds stalled = row.stalls.wall;
      const auto is_much = [&](Nanoseconds time) {
        return time_share(time, loop.wall) >= kLoopBlocked && of_recording(time) >= kWorthSaying;
      };
      if (!is_much(loop.blocked) && !is_much(stalled)) continue;
      add(is_much(loop.blocked) ? "loop_blocked" : "loop_stalled",
          of_recording(std::max(loop.blocked, stalled)), plain(row.sentence),
          {{"blocked_share", share},
           {"wall_ns", double(loop.wall)},
           {"blocked_ns", double(loop.blocked)},
           {"stalls", double(row.stalls.proved)},
           {"not_proved_stalls", double(row.stalls_seen - row.stalls.proved)},
           {"stalled_ns", double(stalled)}},
          {{"thread", row.thread},
           {"loop", std::string(loop.kind)},
           {"function", row.name},
           {"file", row.file}});
    }
  }

  // Workers that wait for something matter more than workers that compute: a lack of CPUs is already
  // reported.
  void pools() {
    for (const auto& [pool, sentence] : report_.busy_pools) {
      Numbers numbers = {{"workers", double(pool.workers)},
                         {"blocked_share", time_share(pool.blocked, pool.wall)}};
      if (!pool.by_count) numbers.push_back({"at_work_share", time_share(pool.at_work, pool.wall)});
      if (pool.calls_waiting) {
        numbers.push_back({"calls_waiting", *pool.calls_waiting});
        numbers.push_back({"most_calls_waiting", double(pool.most_calls_waiting)});
      }
      add("pool_busy", time_share(pool.blocked, pool.wall), plain(sentence), std::move(numbers),
          {{"pool", std::string(pool.kind)}, {"threads", pool.name}});
    }
  }

  void cpu_waits() {
    Nanoseconds runnable = 0, active = 0;
    for (const ThreadRow& thread : report_.threads) {
      runnable += thread.states.runnable;
      active += thread.states.runnable + thread.states.running;
    }
    const double share = time_share(runnable, active);
    if (share < kCpuWait || of_recording(runnable) < kCpuWait) return;
    Numbers numbers = {{"share", share}, {"wall_ns", double(runnable)}};
    Names names;
    const std::string why = why_no_cpu(profile_, report_, analysis_.cpu, active, numbers, names);
    add("cpu_wait", of_recording(runnable),
        fmt::format("threads that could run waited for a CPU {} of the time: {}", share_words(share), why),
        std::move(numbers), std::move(names));
  }

  // Each process has its own collector, and they run in parallel: their sum is not a part of one length of
  // time.
  void collecting() {
    std::map<int32_t, Nanoseconds> by_process;
    Nanoseconds all = 0, active = 0;
    for (const ThreadRow& thread : report_.threads) {
      active += thread.states.running;
      all += thread.states.collecting;
      if (thread.states.collecting > 0) by_process[thread.pid] += thread.states.collecting;
    }
    if (by_process.empty()) return;
    const auto& [pid, most] =
        *std::max_element(by_process.begin(), by_process.end(),
                          [](const auto& a, const auto& b) { return a.second < b.second; });
    const double share = of_recording(most), busy_share = std::min(1.0, time_share(all, active));
    std::string text = "the cyclic garbage collector ran for ";
    if (share >= kCollecting) {
      text += fmt::format("{} of the recording ({})", share_words(share), time_words(most));
      if (report_.processes_seen > 1) text += fmt::format(" in process {}", pid);
      if (by_process.size() > 1)
        text += fmt::format(", and for {} more in {} other{}", time_words(all - most), by_process.size() - 1,
                            by_process.size() == 2 ? "" : "s");
    } else if (by_process.size() > 1 && busy_share >= kCollecting && of_recording(all) >= kCollecting) {
      // Many processes that are short-lived, or do hardly anything.
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
      // In a program that was idle after its start, imports would be most of what is shown.
      const auto wall = static_cast<Nanoseconds>(entry.total.share * double(analysis_.wall));
      if (entry.total.share < kImports || of_recording(wall) < kWorthSaying) continue;
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
  const std::vector<profile::GilWaiter>& gil_waiters_;
  const profile::TaskRows* tasks_;
  std::vector<Finding> found_;
};

}  // namespace

std::vector<Finding> find_findings(const Profile& profile, const profile::Choices& choices,
                                   const Analysis& analysis, const Report& report,
                                   const std::vector<profile::GilWaiter>& gil_waiters,
                                   const profile::TaskRows* tasks) {
  return Findings(profile, choices, analysis, report, gil_waiters, tasks).all();
}

}  // namespace phlox::report
