#include "phlox/report/findings.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <map>
#include <utility>

#include "phlox/base/text.h"
#include "phlox/report/cpu_words.h"
#include "phlox/report/endpoint_rows.h"
#include "phlox/report/finding_limits.h"
#include "phlox/report/hot_findings.h"
#include "phlox/report/signal_rows.h"
#include "phlox/report/table.h"
#include "phlox/report/task_findings.h"
#include "phlox/report/wait_findings.h"
#include "phlox/view/quality.h"
#include "phlox/view/whole_waits.h"

namespace phlox::report {
namespace {

using profile::Profile;

constexpr double kCpuWait = 0.05;
constexpr double kLoopBlocked = 0.02;  // of the loop's time
constexpr double kCollecting = 0.03;
constexpr double kDescendants = 0.1;  // of one CPU
constexpr double kImports = 0.05;

class Findings {
 public:
  Findings(const Profile& profile, const view::Choices& choices, const Analysis& analysis,
           const Report& report, const std::vector<view::GilWaiter>& gil_waiters,
           const profile::TaskRows* tasks)
      : profile_(profile),
        choices_(choices),
        analysis_(analysis),
        report_(report),
        gil_waiters_(gil_waiters),
        tasks_(tasks) {}

  std::vector<Finding> all() && {
    quality();
    if (tasks_ != nullptr && is_of_all()) append(task_findings(profile_, *tasks_));
    not_examined();
    signals();
    // Few samples say little about where CPU time goes, but waits that the kernel timed are complete.
    const bool exact = view::waits_are_exact(profile_);
    const bool are_few = analysis_.samples < kFewSamples;
    if (are_few) few_samples(exact);
    if (!are_few || exact) {
      append(gil_findings(profile_, analysis_, report_, gil_waiters_));
      if (auto finding = waiting_finding(profile_, choices_, analysis_, report_))
        found_.push_back(*std::move(finding));
      cpu_waits();
      loops();
      pools();
      if (auto finding = endpoint_finding(report_)) found_.push_back(*std::move(finding));
    }
    if (!are_few) {
      append(hot_findings(profile_, analysis_, report_));
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
  void append(std::vector<Finding> more) {
    found_.insert(found_.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
  }
  double of_recording(Nanoseconds time) const { return part_of_recording(report_, time); }

  void quality() {
    if (report_.warning.empty()) return;
    const auto quality = view::summarize_quality(profile_);
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
        fmt::format("{} nothing about where {} goes: record {}with a higher rate",
                    analysis_.samples == 1 ? std::string("one sample says")
                                           : fmt::format("{} samples say", analysis_.samples),
                    waits_are_exact ? "CPU time" : "time", choices_.trace ? "" : "for longer, or "),
        {{"samples", double(analysis_.samples)}});
  }

  // Only for the whole recording: it is not known for a part.
  bool is_of_all() const {
    return choices_.from == 0 && choices_.to == std::numeric_limits<Nanoseconds>::max() && !choices_.pid &&
           !choices_.thread_regex && !choices_.label_regex && !choices_.endpoint_regex && !choices_.trace;
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
      const view::LoopTime& loop = row.time;
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
  const view::Choices& choices_;
  const Analysis& analysis_;
  const Report& report_;
  const std::vector<view::GilWaiter>& gil_waiters_;
  const profile::TaskRows* tasks_;
  std::vector<Finding> found_;
};

}  // namespace

std::vector<Finding> find_findings(const Profile& profile, const view::Choices& choices,
                                   const Analysis& analysis, const Report& report,
                                   const std::vector<view::GilWaiter>& gil_waiters,
                                   const profile::TaskRows* tasks) {
  return Findings(profile, choices, analysis, report, gil_waiters, tasks).all();
}

}  // namespace phlox::report
