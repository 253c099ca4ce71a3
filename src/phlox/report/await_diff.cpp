#include "phlox/report/await_diff.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string_view>
#include <tuple>
#include <utility>

#include "phlox/base/text.h"
#include "phlox/profile/await_time.h"
#include "phlox/profile/frame_labels.h"
#include "phlox/report/await_groups.h"

namespace phlox::report {
namespace {

// Qualified name, file, lines from the coroutine's first one; kind and class of the wait target.
using GroupKey = std::tuple<std::string, std::string, int32_t, std::string, std::string>;
using Groups = std::map<GroupKey, AwaitChange>;

GroupKey group_key(const profile::Profile& profile, const AwaitGroup& group) {
  if (!group.frame) return {"", "", 0, group.kind, group.awaited};
  const profile::Frame& frame = profile.frame(group.frame);
  return {frame.qualified_name, std::string(base_name(frame.file)), frame.line - frame.first_line, group.kind,
          group.awaited};
}

// false: there is no census.
bool add_run(const AwaitRun& run, double AwaitChange::*part, double runs, AwaitSide& side, Groups& groups) {
  std::map<profile::ProcessId, Nanoseconds> spans;
  for (const profile::TaskCensus& census : run.tasks->censuses) {
    spans[census.process] += census.span;
    side.times += census.times;
    side.span += census.span;
  }
  for (const LoopAwaits& loop : loop_awaits(*run.tasks)) {
    const Nanoseconds span = spans[run.tasks->loops[loop.loop.value - 1].process];
    if (span <= 0) continue;
    for (const AwaitGroup& group : loop.groups) {
      AwaitChange& into = groups[group_key(*run.profile, group)];
      name_group(into, *run.profile, group);
      into.*part += static_cast<double>(group.time) / static_cast<double>(span) / runs;
    }
  }
  return std::any_of(spans.begin(), spans.end(), [](const auto& row) { return row.second > 0; });
}

bool add_side(const std::vector<AwaitRun>& runs, double AwaitChange::*part, AwaitSide& side, Groups& groups) {
  return !runs.empty() && std::all_of(runs.begin(), runs.end(), [&](const AwaitRun& run) {
    return add_run(run, part, static_cast<double>(runs.size()), side, groups);
  });
}

std::string sampled_words(const AwaitSide& side) {
  return fmt::format("every {} ({} times in {})", time_words(between_censuses(side.times, side.span)),
                     count_words(side.times), time_words(side.span));
}

std::string at_a_time_words(double tasks) {
  if (std::abs(tasks) >= 1000) return fmt::format("{}", std::llround(std::clamp(tasks, -9e18, 9e18)));
  return fmt::format("{:.{}f}", tasks, std::abs(tasks) >= 10 ? 1 : 2);
}

}  // namespace

std::optional<AwaitDiff> await_diff(const std::vector<AwaitRun>& before, const std::vector<AwaitRun>& after) {
  AwaitDiff diff;
  Groups groups;
  // AFTER last: its names stay.
  if (!add_side(before, &AwaitChange::before, diff.before, groups) ||
      !add_side(after, &AwaitChange::after, diff.after, groups))
    return {};
  for (auto& [key, group] : groups) diff.groups.push_back(std::move(group));
  std::stable_sort(diff.groups.begin(), diff.groups.end(), [](const AwaitChange& a, const AwaitChange& b) {
    return std::abs(a.after - a.before) > std::abs(b.after - b.before);
  });
  return diff;
}

Table await_diff_table(const AwaitDiff& diff, size_t limit) {
  Table table;
  table.title = "What tasks await: how many wait at a time";
  table.note = fmt::format(
      "Sampled: before {}, after {}. The sampling error of these numbers is not known, so there is no "
      "verdict.",
      sampled_words(diff.before), sampled_words(diff.after));
  table.columns = {{"change", true},
                   {"before", true},
                   {"after", true},
                   {"for", false, Fit::name},
                   {"coroutine", false, Fit::name},
                   {"where", false, Fit::place}};
  for (const AwaitChange& row : diff.groups) {
    if (table.rows.size() == limit) break;
    const double change = row.after - row.before;
    table.rows.push_back({(change > 0 ? "+" : "") + at_a_time_words(change), at_a_time_words(row.before),
                          at_a_time_words(row.after), plain(row.words), plain(row.name),
                          location_words(row.file, row.line)});
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
    json.count("groups_seen", diff.groups.size());
    const std::vector<AwaitChange> first(
        diff.groups.begin(),
        diff.groups.begin() + static_cast<ptrdiff_t>(std::min(limit, diff.groups.size())));
    json.objects("groups", first, [&](const AwaitChange& row) {
      write_group(json, row);
      json.number("before_tasks", row.before);
      json.number("after_tasks", row.after);
    });
  });
}

}  // namespace phlox::report
