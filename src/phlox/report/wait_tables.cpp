#include "phlox/report/wait_tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "phlox/report/native_column.h"

namespace phlox::report {
namespace {

std::string and_more(const std::string& thread, uint32_t threads) {
  return plain(thread) + (threads > 1 ? fmt::format(" and {} more", threads - 1) : "");
}

// A holder of less than this part of a wait gets no row.
constexpr double kWorthARow = 0.05;

void add_gil_holders(Table& table, std::vector<std::string> waiter, const GilWaitRow& row, size_t most) {
  const auto add = [&](double share, std::string by, std::string in) {
    waiter.insert(waiter.end(), {share_words(share), std::move(by), std::move(in)});
    table.rows.push_back(std::move(waiter));
    waiter.assign(4, "");
  };
  const auto part = [&](Nanoseconds time) { return row.wall > 0 ? double(time) / double(row.wall) : 0; };
  double rest = 1 - part(row.unseen);
  for (size_t i = 0; i < std::min(most, row.holders.size()); ++i) {
    const GilHolderRow& holder = row.holders[i];
    if (holder.share < kWorthARow) break;
    rest -= holder.share;
    add(holder.share, and_more(holder.thread, holder.threads),
        place_words(holder.name, holder.file, holder.line));
  }
  if (rest >= kWorthARow) add(rest, "others", "");
  if (part(row.free) >= kWorthARow) add(part(row.free), "no thread: the GIL was free, but no CPU", "");
  const double unseen = part(row.unseen - row.free);
  if (unseen >= kWorthARow || !waiter.front().empty()) add(unseen, "not known", "");
}

}  // namespace

Table loop_table(const Report& report) {
  constexpr size_t kMost = 10;
  Table table;
  table.title = "Event loops (parts of each loop's time)";
  table.columns = {{"thread"},
                   {"loop"},
                   {"time", true},
                   {"idle", true},
                   {"running", true},
                   {"blocked", true},
                   {"waits for GIL", true},
                   {"waits for CPU", true},
                   {"not known", true},
                   {"blocked longest in"}};
  for (const LoopRow& row : report.loops) {
    if (table.rows.size() == kMost) break;
    const view::LoopTime& loop = row.time;
    table.rows.push_back({plain(row.thread), std::string(loop.kind), time_words(loop.wall),
                          part_words(loop.idle, loop.wall), part_words(loop.running, loop.wall),
                          part_words(loop.blocked, loop.wall), part_words(loop.gil, loop.wall),
                          part_words(loop.cpu, loop.wall), part_words(loop.unknown, loop.wall),
                          row.name.empty() ? "" : place_words(row.name, row.file, row.line)});
  }
  table.left_out = report.loops.size() - table.rows.size();
  return table;
}

Table wait_table(const Report& report) {
  Table table;
  table.title = "Where threads wait (parts of the wall time of all threads)";
  table.columns = {{"share", true},
                   {"wall", true},
                   {"threads", true},
                   {"idle", true},
                   {"not known", true},
                   {"for", false, Fit::name},
                   {"function", false, Fit::name},
                   {"where", false, Fit::place}};
  for (const WaitRow& row : report.waits) {
    table.rows.push_back({share_words(row.share), time_words(row.wall), count_words(row.threads),
                          part_words(row.for_work, row.wall), part_words(row.not_known, row.wall),
                          plain(view::wait_words(row.waits, row.what, row.wait_target)), plain(row.name),
                          location_words(row.file, row.line)});
  }
  add_native_column(table, report.waits);
  const bool any = std::any_of(report.waits.begin(), report.waits.end(),
                               [](const WaitRow& row) { return !row.called_from.empty(); });
  if (!any) return table;
  table.columns.push_back({"called from", false, Fit::name});
  for (size_t i = 0; i < report.waits.size(); ++i) {
    const WaitRow& row = report.waits[i];
    table.rows[i].push_back(row.called_from.empty()
                                ? ""
                                : place_words(row.called_from, row.called_from_file, row.called_from_line));
  }
  return table;
}

Table gil_table(const Report& report) {
  Table table;
  table.title = "Waits for the GIL, and which thread held it";
  table.note =
      report.waits_exact
          ? "Wait times are exact, from the scheduler. The holder is known from samples, and from the "
            "moments when threads left their CPU."
          : "From samples: waits between two samples are not known.";
  table.columns = {{"thread"},     {"waits", true}, {"of its time", true},   {"longest in", false, Fit::name},
                   {"held", true}, {"by"},          {"in", false, Fit::name}};
  constexpr size_t kMostHolders = 3;
  const size_t waiters = std::max<size_t>(report.gil_waits.size(), 1);
  // With many waiters, only the first holder of each.
  const size_t most = std::clamp<size_t>(15 / waiters, 1, kMostHolders);
  for (const GilWaitRow& row : report.gil_waits) {
    add_gil_holders(table,
                    {plain(row.thread), time_words(row.wall), share_words(row.share),
                     place_words(row.name, row.file, row.line)},
                    row, most);
  }
  table.left_out = report.gil_waits_seen - report.gil_waits.size();
  return table;
}

Table ended_waits_table(const Report& report) {
  Table table;
  table.title = "What ended waits: a lock was released, a queue or a pipe was written to, a timeout expired";
  table.note =
      "Only where the recording proves it. What ended the other waits is not known, or they had not ended.";
  table.columns = {
      {"wall", true},           {"waits", true}, {"threads", true},       {"for", false, Fit::name},
      {"in", false, Fit::name}, {"ended by"},    {"in", false, Fit::name}};
  for (const EndedWaitRow& row : report.ended_waits) {
    table.rows.push_back({time_words(row.wall), count_words(row.count), count_words(row.threads),
                          plain(view::wait_words(row.waits, row.what, row.wait_target)),
                          place_words(row.name, row.file, row.line), and_more(row.by, row.by_threads),
                          place_words(row.by_name, row.by_file, row.by_line)});
  }
  table.left_out = report.ended_waits_seen - report.ended_waits.size();
  return table;
}

// "37 for at least 310 ms": tasks that a census found ready to run while it lasted.
std::string ready_words(const StallRow& row) {
  if (row.ready == 0) return "-";
  return row.ready_for > 0 ? fmt::format("{} for at least {}", row.ready, time_words(row.ready_for))
                           : std::to_string(row.ready);
}

Table stall_table(const Report& report) {
  constexpr size_t kMost = 10;
  std::vector<std::pair<const LoopRow*, const StallRow*>> stalls;
  Table table;
  bool exact = true;
  for (const LoopRow& loop : report.loops) {
    for (const StallRow& row : loop.stall_rows) stalls.emplace_back(&loop, &row);
    table.left_out += loop.stalls_seen;
    exact = exact && (loop.stalls.exact || loop.stall_rows.empty());
  }
  std::stable_sort(stalls.begin(), stalls.end(),
                   [](const auto& a, const auto& b) { return a.second->stall.wall > b.second->stall.wall; });
  if (stalls.size() > kMost) stalls.resize(kMost);
  table.left_out -= stalls.size();
  table.title = "Stalls of event loops, the longest first";
  table.note =
      exact ? "From one wait for events to the next. A poll that did not wait is not in the recording: where "
              "no single wait proves one turn, there may have been several."
            : "From samples: between two of them, a loop may have waited for events.";
  table.columns = {{"at", true}, {"length", true},         {"turns"},      {"callbacks", true},
                   {"thread"},   {"in", false, Fit::name}, {"what it did"}};
  for (const auto& [loop, row] : stalls) {
    const view::Stall& stall = row->stall;
    table.rows.push_back({fmt::format("{:.3f} s", double(stall.start) * 1e-9), view::stall_length(stall),
                          stall.is_one_turn() ? "one" : "one or more", std::to_string(stall.callbacks),
                          plain(loop->thread), place_words(row->name, row->file, row->line),
                          plain(row->words)});
  }
  const bool any_ready =
      std::any_of(stalls.begin(), stalls.end(), [](const auto& one) { return one.second->ready > 0; });
  if (!any_ready) return table;
  table.columns.push_back({"ready tasks", true});
  for (size_t i = 0; i < stalls.size(); ++i) table.rows[i].push_back(ready_words(*stalls[i].second));
  return table;
}

}  // namespace phlox::report
