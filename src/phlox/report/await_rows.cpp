#include "phlox/report/await_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>
#include <utility>

#include "phlox/report/await_groups.h"
#include "phlox/report/ready_rows.h"
#include "phlox/view/await_time.h"
#include "phlox/view/frame_labels.h"

namespace phlox::report {
namespace {

AwaitRow await_row(const profile::Profile& profile, const profile::TaskRows& tasks, const AwaitGroup& group) {
  AwaitRow row;
  name_group(row, profile, group);
  row.time = group.time;
  row.seen = group.seen;
  row.longest = group.longest;
  row.at_end = group.at_end;
  for (const profile::FrameId frame : task_frames(tasks, group.stack)) {
    const auto label = view::line_label(profile, frame);
    LineRow line;
    std::tie(line.name, line.file, line.line) = std::tie(label.name, label.file, label.line);
    line.full = label.whole_name();
    row.chain.push_back(std::move(line));
  }
  return row;
}

// "8.0": how many tasks wait there at once.
std::string tasks_words(Nanoseconds time, Nanoseconds span) {
  if (span <= 0) return "";
  const double tasks = static_cast<double>(time) / static_cast<double>(span);
  return tasks >= 1000 ? count_words(static_cast<uint64_t>(tasks + 0.5)) : fmt::format("{:.1f}", tasks);
}

// `is_shared`: other loops of the process were read in the same censuses.
std::string missing_words(const profile::TaskCensus& census, bool is_shared) {
  const auto part = [&](uint64_t number) {
    return share_words(static_cast<double>(number) /
                       static_cast<double>(census.tasks + census.unproved + census.ended + census.beyond));
  };
  std::string text;
  const std::pair<uint64_t, std::string_view> kinds[] = {
      {census.unproved,
       is_shared ? "of the tasks of all loops of this process changed while they were read, and are "
                   "missing in these tables"
                 : "of the tasks changed while they were read, and are missing here"},
      {census.ended, "ended before they were read"},
      {census.beyond, "were too many to be read, and are missing here"},
      {census.without_stack, "are counted without their coroutines: there are too many different ones"}};
  for (const auto& [number, words] : kinds) {
    if (number > 0) text += fmt::format("{}{} {}", text.empty() ? " " : "; ", part(number), words);
  }
  return text.empty() ? text : text + ".";
}

std::string note_of(const LoopAwaitRow& loop, bool is_shared) {
  const profile::TaskCensus& census = loop.census;
  const std::string problem =
      census.problem.empty() ? "" : fmt::format(" Tasks may be missing: {}.", plain(census.problem));
  return fmt::format(
      "Sampled every {} ({} times in {}). At a time {} tasks waited, {} were ready to run.{}{}",
      time_words(between_censuses(census.times, census.span)), count_words(census.times),
      time_words(census.span), tasks_words(loop.waiting, census.span), tasks_words(loop.ready, census.span),
      missing_words(census, is_shared), problem);
}

Table await_table(const LoopAwaitRow& loop, bool is_shared) {
  Table table;
  table.title = fmt::format("What tasks await: {}, {}",
                            loop.thread.empty() ? fmt::format("process {}", loop.pid) : plain(loop.thread),
                            plain(loop.type));
  table.note = note_of(loop, is_shared);
  table.columns = {{"share", true},
                   {"time of all", true},
                   {"tasks at a time", true},
                   {"one, at most", true},
                   {"for", false, Fit::name},
                   {"coroutine", false, Fit::name},
                   {"where", false, Fit::place}};
  for (const AwaitRow& row : loop.groups) {
    const double share =
        loop.waiting > 0 ? static_cast<double>(row.time) / static_cast<double>(loop.waiting) : 0;
    table.rows.push_back({share_words(share), time_words(row.time), tasks_words(row.time, loop.census.span),
                          row.longest > 0 ? time_words(row.longest) : "-", plain(row.words), plain(row.name),
                          location_words(row.file, row.line)});
  }
  table.left_out = loop.groups_seen - loop.groups.size();
  return table;
}

constexpr size_t kMostAwaitTables = 5;

// In one row each.
Table other_loops_table(const Report& report) {
  Table table;
  table.title = "What tasks await: the other event loops";
  table.columns = {{"time of all", true},
                   {"tasks at a time", true},
                   {"ready to run", true},
                   {"thread"},
                   {"loop"},
                   {"most of it for", false, Fit::name},
                   {"coroutine", false, Fit::name},
                   {"where", false, Fit::place}};
  for (size_t i = kMostAwaitTables; i < report.awaits.size(); ++i) {
    const LoopAwaitRow& loop = report.awaits[i];
    const AwaitRow most = loop.groups.empty() ? AwaitRow() : loop.groups.front();
    table.rows.push_back(
        {time_words(loop.waiting), tasks_words(loop.waiting, loop.census.span),
         tasks_words(loop.ready, loop.census.span),
         loop.thread.empty() ? fmt::format("not known, in process {}", loop.pid) : plain(loop.thread),
         plain(loop.type), plain(most.words), plain(most.name), location_words(most.file, most.line)});
  }
  return table;
}

}  // namespace

std::vector<LoopAwaitRow> await_rows(const profile::Profile& profile, const view::SampleFilter& filter,
                                     const profile::TaskRows& tasks, size_t limit) {
  std::vector<LoopAwaitRow> rows;
  auto ready = ready_rows(profile, filter, tasks);
  for (const LoopAwaits& loop : loop_awaits(tasks)) {
    const profile::EventLoop& of = tasks.loops[loop.loop.value - 1];
    LoopAwaitRow row;
    if (of.thread) row.thread = view::thread_label(profile.thread(of.thread));
    row.pid = profile.process(of.process).pid;
    row.type = of.type;
    std::tie(row.waiting, row.ready, row.running) = std::tie(loop.waiting, loop.ready, loop.running);
    row.census = census_of(tasks, of.process);
    for (const profile::ReadyTasks& one : tasks.ready) {
      if (one.loop == loop.loop) row.most_ready = std::max(row.most_ready, one.tasks);
    }
    row.ready_rows = std::move(ready[loop.loop]);
    row.groups_seen = loop.groups.size();
    for (size_t i = 0; i < std::min(limit, loop.groups.size()); ++i)
      row.groups.push_back(await_row(profile, tasks, loop.groups[i]));
    rows.push_back(std::move(row));
  }
  return rows;
}

std::vector<Table> await_tables(const Report& report) {
  std::vector<Table> tables;
  for (size_t i = 0; i < std::min(kMostAwaitTables, report.awaits.size()); ++i) {
    const LoopAwaitRow& loop = report.awaits[i];
    const auto of_process = std::count_if(report.awaits.begin(), report.awaits.end(),
                                          [&](const LoopAwaitRow& other) { return other.pid == loop.pid; });
    if (!loop.groups.empty()) tables.push_back(await_table(loop, of_process > 1));
    if (Table ready = ready_table(loop); !ready.rows.empty()) tables.push_back(std::move(ready));
  }
  if (report.awaits.size() > kMostAwaitTables) tables.push_back(other_loops_table(report));
  return tables;
}

void write_awaits(JsonText& json, const std::vector<LoopAwaitRow>& rows) {
  json.objects("awaits", rows, [&](const LoopAwaitRow& loop) {
    json.text("thread", loop.thread);
    json.integer("pid", loop.pid);
    json.text("loop", loop.type);
    json.object("sampled", [&] {
      json.count("times", loop.census.times);
      json.integer("every_ns", between_censuses(loop.census.times, loop.census.span));
      json.integer("span_ns", loop.census.span);
      json.integer("phlox_cpu_ns", loop.census.cost);
      json.count("tasks", loop.census.tasks);
      json.count("unproved", loop.census.unproved);
      json.count("ended", loop.census.ended);
      json.count("beyond", loop.census.beyond);
      json.count("without_stack", loop.census.without_stack);
      json.text("problem", loop.census.problem);
    });
    json.integer("waiting_ns", loop.waiting);
    json.integer("ready_ns", loop.ready);
    json.integer("running_ns", loop.running);
    json.count("most_ready", loop.most_ready);
    json.objects("while_ready", loop.ready_rows, [&](const ReadyRow& row) {
      json.text("name", row.name);
      json.text("file", row.file);
      json.integer("line", row.line);
      json.text("words", row.words);
      json.number("share", row.share);
      json.count("most", row.most);
      json.count("times", row.times);
    });
    json.count("groups_seen", loop.groups_seen);
    json.objects("groups", loop.groups, [&](const AwaitRow& row) {
      write_group(json, row);
      json.integer("time_ns", row.time);
      json.count("seen", row.seen);
      json.integer("longest_ns", row.longest);
      json.count("at_end", row.at_end);
      json.objects("chain", row.chain, [&](const LineRow& line) {
        json.text("name", line.full);
        json.text("file", line.file);
        json.integer("line", line.line);
      });
    });
  });
}

}  // namespace phlox::report
