#include "phlox/report/stall_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "phlox/base/text.h"

namespace phlox::report {
namespace {

std::string place_of(const StallRow& row) {
  if (row.file.empty()) return plain(row.name);
  return fmt::format("{} ({})", plain(row.name), location_words(base_name(row.file), row.line));
}

}  // namespace

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
            : "As samples show it: between two of them a loop may have waited for events.";
  table.columns = {{"at", true}, {"length", true},         {"turns"},      {"callbacks", true},
                   {"thread"},   {"in", false, Fit::name}, {"what it did"}};
  for (const auto& [loop, row] : stalls) {
    const profile::Stall& stall = row->stall;
    table.rows.push_back({fmt::format("{:.3f} s", double(stall.start) * 1e-9), profile::stall_length(stall),
                          stall.is_one_turn() ? "one" : "one or more", std::to_string(stall.callbacks),
                          plain(loop->thread), place_of(*row), plain(row->words)});
  }
  return table;
}

}  // namespace phlox::report
