#include "phlox/report/await_diff.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string_view>
#include <tuple>
#include <utility>

#include "phlox/base/text.h"
#include "phlox/report/await_error.h"
#include "phlox/report/await_groups.h"
#include "phlox/view/await_time.h"
#include "phlox/view/frame_labels.h"

namespace phlox::report {
namespace {

// Qualified name, file, lines from the coroutine's first one; kind and class of the wait target.
using GroupKey = std::tuple<std::string, std::string, int32_t, std::string, std::string>;

GroupKey group_key(const profile::Profile& profile, const AwaitGroup& group) {
  if (!group.frame) return {"", "", 0, group.kind, group.awaited};
  const profile::Frame& frame = profile.frame(group.frame);
  return {frame.qualified_name, std::string(base_name(frame.file)), frame.line - frame.first_line, group.kind,
          group.awaited};
}

// One group in one run: how many tasks wait at a time.
struct GroupOfRun {
  double tasks = 0;
  ChangeSum changes;
};
struct RunOfTasks {
  std::map<GroupKey, GroupOfRun> groups;
  double all = 0;  // tasks of all groups
  bool is_known = false;
  double step = 0, unseen = 0;

  Amount amount(const GroupKey& key) const {
    const auto at = groups.find(key);
    if (at == groups.end()) return {0, 0, step, unseen};
    return {at->second.tasks, at->second.changes.variance(), step, unseen};
  }
};
struct Compared {
  std::map<GroupKey, AwaitChange> named;
  std::vector<RunOfTasks> before, after;
};

std::map<profile::ProcessId, Nanoseconds> census_spans(const profile::TaskRows& tasks) {
  std::map<profile::ProcessId, Nanoseconds> spans;
  for (const profile::TaskCensus& census : tasks.censuses) spans[census.process] += census.span;
  return spans;
}

// none: there is no census.
std::optional<RunOfTasks> measure(const AwaitRun& run, AwaitSide& side,
                                  std::map<GroupKey, AwaitChange>& named) {
  RunOfTasks measured;
  CensusError error = census_error(*run.profile, *run.tasks);
  error.missing_end.clear();  // the number of tasks is that of the time between censuses
  measured.is_known = error.is_known;
  const auto spans = census_spans(*run.tasks);
  bool any = false;
  for (const profile::TaskCensus& census : run.tasks->censuses) {
    side.times += census.times;
    side.span += census.span;
    if (census.span <= 0) continue;
    any = true;
    const auto span = static_cast<double>(spans.at(census.process));
    measured.step = std::max(measured.step, error.step / span);
    measured.unseen += unseen_of(census) / span;
  }
  for (const LoopAwaits& loop : loop_awaits(*run.tasks)) {
    const auto at = spans.find(run.tasks->loops[loop.loop.value - 1].process);
    if (at == spans.end() || at->second <= 0) continue;
    const auto span = static_cast<double>(at->second);
    for (const AwaitGroup& group : loop.groups) {
      const GroupKey key = group_key(*run.profile, group);
      name_group(named[key], *run.profile, group);
      GroupOfRun& into = measured.groups[key];
      into.tasks += static_cast<double>(group.time) / span;
      measured.all += static_cast<double>(group.time) / span;
      for (const uint32_t row : group.rows)
        into.changes.add(ChangeSum::bins_of(*run.tasks, run.tasks->times[row], error), 1 / span);
    }
  }
  return any ? std::optional(std::move(measured)) : std::nullopt;
}

// false: a run has no census.
bool measure_all(const std::vector<AwaitRun>& runs, AwaitSide& side, std::map<GroupKey, AwaitChange>& named,
                 std::vector<RunOfTasks>& into) {
  for (const AwaitRun& run : runs) {
    auto measured = measure(run, side, named);
    if (!measured) return false;
    into.push_back(*std::move(measured));
  }
  return !runs.empty();
}

Runs runs_of(const Compared& compared, const GroupKey& key) {
  Runs runs;
  for (const RunOfTasks& run : compared.before) runs.before.push_back(run.amount(key));
  for (const RunOfTasks& run : compared.after) runs.after.push_back(run.amount(key));
  return runs;
}

// With many tasks, the sum of their times says nothing about the importance of one of them: as with threads.
Margin margin_of(const Compared& compared, double margin) {
  Margin made{margin, 0};
  for (const auto* side : {&compared.before, &compared.after}) {
    for (const RunOfTasks& run : *side)
      made.least = std::max(made.least, std::min(run.all, 1.0) * margin / 10);
  }
  return made;
}

// `all`: of each group. One too small to matter is not asked for; of runs, it is never reported as changed.
void judge(AwaitDiff& diff, const std::vector<Runs>& all, const Margin& margin) {
  std::vector<size_t> asked;
  std::vector<Runs> runs_of_asked;
  for (size_t i = 0; i < all.size(); ++i) {
    AwaitChange& group = diff.groups[i];
    group.before = mean_of(all[i].before);
    group.after = mean_of(all[i].after);
    group.found = interval_of(all[i]);
    if (std::max(group.before, group.after) < margin.least) continue;
    asked.push_back(i);
    runs_of_asked.push_back(all[i]);
  }
  if (!diff.judged) return;
  if (diff.question == Question::runs) {
    const std::vector<Comparison> found = judge_runs(runs_of_asked, margin);
    for (size_t i = 0; i < found.size(); ++i) diff.groups[asked[i]].found = found[i];
  } else {
    for (size_t i = 0; i < all.size(); ++i)
      diff.groups[i].found =
          judge_recordings(all[i].before.front(), all[i].after.front(), margin, asked.size());
  }
  for (AwaitChange& group : diff.groups)
    group.verdict = verdict_of(group.found, {group.before}, {group.after});
}

std::string sampled_words(const AwaitSide& side) {
  return fmt::format("every {} ({} times in {})", time_words(between_censuses(side.times, side.span)),
                     count_words(side.times), time_words(side.span));
}

std::string at_a_time_words(double tasks) {
  if (std::abs(tasks) >= 1000) return fmt::format("{}", std::llround(std::clamp(tasks, -9e18, 9e18)));
  return fmt::format("{:.{}f}", tasks, std::abs(tasks) >= 10 ? 1 : 2);
}

std::string change_words(double tasks) {
  return (tasks > 0 ? "+" : "") + at_a_time_words(tasks);
}

std::string interval_words(const Comparison& found) {
  if (!std::isfinite(found.low) || !std::isfinite(found.high)) return "not known";
  return fmt::format("{} to {}", change_words(found.low), change_words(found.high));
}

size_t differing(const AwaitDiff& diff) {
  return static_cast<size_t>(std::count_if(diff.groups.begin(), diff.groups.end(),
                                           [](const AwaitChange& row) { return is_certain(row.verdict); }));
}

std::string note_of(const AwaitDiff& diff) {
  std::string words =
      fmt::format("Sampled: before {}, after {}.", sampled_words(diff.before), sampled_words(diff.after));
  if (!diff.judged && diff.question == Question::recordings)
    return words +
           " There is no verdict: an older version of Phlox made one of these recordings, without what the "
           "sampling error follows from.";
  if (!diff.judged) return words + " There are too few runs for a verdict.";
  return words + fmt::format(" {} of {} differ{}.", count_words(differing(diff)),
                             count_words(diff.groups.size()), differing(diff) == 1 ? "s" : "");
}

}  // namespace

std::optional<AwaitDiff> await_diff(const std::vector<AwaitRun>& before, const std::vector<AwaitRun>& after,
                                    double margin) {
  AwaitDiff diff;
  Compared compared;
  // AFTER last: its names stay.
  if (!measure_all(before, diff.before, compared.named, compared.before) ||
      !measure_all(after, diff.after, compared.named, compared.after))
    return {};
  std::vector<Runs> all;
  for (auto& [key, group] : compared.named) {
    all.push_back(runs_of(compared, key));
    diff.groups.push_back(std::move(group));
  }
  if (before.size() + after.size() > 2) {
    diff.question = Question::runs;
    diff.judged = can_decide(before.size(), after.size());
  } else {
    diff.judged = compared.before.front().is_known && compared.after.front().is_known;
  }
  judge(diff, all, margin_of(compared, margin));
  std::stable_sort(diff.groups.begin(), diff.groups.end(), [](const AwaitChange& a, const AwaitChange& b) {
    if (is_certain(a.verdict) != is_certain(b.verdict)) return is_certain(a.verdict);
    return std::abs(a.after - a.before) > std::abs(b.after - b.before);
  });
  return diff;
}

Table await_diff_table(const AwaitDiff& diff, size_t limit) {
  const bool runs = diff.question == Question::runs;
  Table table;
  table.title = "What tasks await: how many wait at a time";
  table.note = note_of(diff);
  table.columns = {{"change", true}};
  if (diff.judged) table.columns.push_back({"99 %", true});
  table.columns.insert(table.columns.end(), {{"before", true}, {"after", true}});
  if (diff.judged && runs) table.columns.push_back({"chance", true});
  if (diff.judged) table.columns.push_back({""});
  table.columns.insert(
      table.columns.end(),
      {{"for", false, Fit::name}, {"coroutine", false, Fit::name}, {"where", false, Fit::place}});
  for (const AwaitChange& row : diff.groups) {
    if (table.rows.size() == limit) break;
    auto& cells = table.rows.emplace_back();
    cells.push_back(change_words(row.after - row.before));
    if (diff.judged) cells.push_back(interval_words(row.found));
    cells.push_back(at_a_time_words(row.before));
    cells.push_back(at_a_time_words(row.after));
    if (diff.judged && runs) cells.push_back(fmt::format("{:.2g}", row.found.chance));
    if (diff.judged) cells.emplace_back(verdict_name(row.verdict, diff.question));
    cells.push_back(plain(row.words));
    cells.push_back(plain(row.name));
    cells.push_back(location_words(row.file, row.line));
  }
  table.left_out = diff.groups.size() - table.rows.size();
  return table;
}

void write_await_diff(JsonText& json, const AwaitDiff& diff, size_t limit) {
  json.object("awaits", [&] {
    for (const auto& [name, side] :
         {std::pair("before_sampled", &diff.before), {"after_sampled", &diff.after}}) {
      json.object(name, [&, side = side] {
        json.count("times", side->times);
        json.integer("every_ns", between_censuses(side->times, side->span));
        json.integer("span_ns", side->span);
      });
    }
    json.truth("judged", diff.judged);
    json.count("groups_seen", diff.groups.size());
    json.count("groups_differ", differing(diff));
    const size_t shown = std::max(limit, differing(diff));
    const std::vector<AwaitChange> first(
        diff.groups.begin(),
        diff.groups.begin() + static_cast<ptrdiff_t>(std::min(shown, diff.groups.size())));
    json.objects("groups", first, [&](const AwaitChange& row) {
      write_group(json, row);
      json.number("before_tasks", row.before);
      json.number("after_tasks", row.after);
      json.number("difference", row.after - row.before);
      if (!diff.judged) return;
      json.number("low", row.found.low);
      json.number("high", row.found.high);
      if (diff.question == Question::runs) json.number("chance", row.found.chance);
      json.text("verdict", verdict_name(row.verdict, diff.question));
    });
  });
}

}  // namespace phlox::report
