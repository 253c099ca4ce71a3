#include "phlox/exporters/page_traces.h"

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "phlox/base/text.h"
#include "phlox/profile/trace_ids.h"
#include "phlox/view/trace_parts.h"
#include "phlox/view/traces.h"

namespace phlox::exporters {
namespace {

constexpr size_t kMostTraceRows = 100;
constexpr Nanoseconds kTraceUnit = 1000;

struct PageTraceTime {
  uint32_t thread = 0;
  int64_t start = 0, end = 0;  // on the grid
  std::array<uint8_t, 16> trace{};
  int64_t length() const { return end - start; }
};

// Starts of intervals are rounded down. So a time that begins later, and ends earlier, holds none of the
// neighbouring intervals.
void add_times_of(const PageSide& side, uint32_t first_thread, Nanoseconds grid_first,
                  std::vector<PageTraceTime>& times) {
  const profile::Profile& profile = *side.profile;
  const Nanoseconds zero = view::recording_start(profile) + grid_first;
  const view::TraceParts parts(profile);
  parts.each_time([&](profile::ThreadId thread, Nanoseconds from, Nanoseconds to, uint32_t index) {
    const auto& trace = profile.trace_times()[index].ids.trace;
    const uint32_t number = first_thread + thread.value - 1;
    PageTraceTime time{number, (from - zero + kTraceUnit - 1) / kTraceUnit, (to - zero) / kTraceUnit, trace};
    // Spans of one trace after one another are one time.
    if (!times.empty() && times.back().thread == number && times.back().trace == trace &&
        time.start - times.back().end <= 1) {
      times.back().end = std::max(times.back().end, time.end);
    } else if (time.length() > 0) {
      times.push_back(time);
    }
  });
}

size_t keep_longest(std::vector<PageTraceTime>& times) {
  if (times.size() <= kMostTraceTimes) return 0;
  const size_t left_out = times.size() - kMostTraceTimes;
  const auto longer = [](const auto& a, const auto& b) { return a.length() > b.length(); };
  std::nth_element(times.begin(), times.begin() + kMostTraceTimes, times.end(), longer);
  times.resize(kMostTraceTimes);
  std::sort(times.begin(), times.end(), [](const auto& a, const auto& b) {
    return std::pair(a.thread, a.start) < std::pair(b.thread, b.start);
  });
  return left_out;
}

void put_row(Json& head, const view::TraceRow& row) {
  head.open('{');
  head.text("id", profile::id_text(row.trace));
  head.number("start", row.first);
  head.number("wall", row.last - row.first);
  head.number("cpu", row.cpu);
  head.number("waiting", row.waiting);
  head.number("threads", static_cast<int64_t>(row.threads));
  head.number("processes", static_cast<int64_t>(row.processes));
  head.text("place", row.file.empty() ? row.name : row.name + " (" + std::string(base_name(row.file)) + ")");
  head.text("endpoint", row.endpoint);
  head.close('}');
}

}  // namespace

size_t add_trace_times(ColumnWriter& columns, std::span<const PageSide> sides, Nanoseconds grid_first) {
  std::vector<PageTraceTime> times;
  uint32_t threads = 0;
  for (const PageSide& side : sides) {
    add_times_of(side, threads, grid_first, times);
    threads += static_cast<uint32_t>(side.profile->threads().size());
  }
  if (times.empty()) return 0;
  const size_t left_out = keep_longest(times);
  std::vector<int64_t> counts(threads, 0);
  std::map<std::array<uint8_t, 16>, int64_t> numbers;  // by first appearance
  std::string ids;
  std::vector<int64_t> traces;
  int64_t before = 0;
  for (const PageTraceTime& time : times) {
    ++counts[time.thread];
    const auto [at, added] = numbers.try_emplace(time.trace, static_cast<int64_t>(numbers.size()));
    if (added) ids += profile::id_text(time.trace) + "\n";
    traces.push_back(zigzag(at->second - std::exchange(before, at->second)));
  }
  columns.add_text("traces", ids);
  columns.add("thread.traceTimes", ColumnLayout::planes, counts);
  uint32_t thread = ~uint32_t{0};
  int64_t end = 0;
  columns.add("traceTime.start", ColumnLayout::planes, times, [&](const PageTraceTime& time) {
    if (std::exchange(thread, time.thread) != time.thread) end = 0;
    return zigzag(time.start - std::exchange(end, time.end));
  });
  columns.add("traceTime.length", ColumnLayout::planes, times,
              [](const PageTraceTime& time) { return time.length(); });
  columns.add("traceTime.trace", ColumnLayout::planes, traces);
  return left_out;
}

void put_traces(Json& head, const profile::Profile* profile, const profile::TaskRows* tasks,
                view::Choices choices, size_t left_out) {
  view::Traces traces;
  choices.show = view::Show::everything;
  if (profile != nullptr && !profile->trace_times().empty()) {
    if (const auto filter = view::SampleFilter::make_judging(*profile, choices))
      traces = view::find_traces(*profile, *filter, tasks, kMostTraceRows);
  }
  head.key("traces");
  head.open('{');
  head.number("count", static_cast<int64_t>(traces.count));
  head.number("time", traces.time);
  head.number("of", traces.of);
  head.number("leftOut", static_cast<int64_t>(left_out));
  head.key("longest");
  head.open('[');
  for (const view::TraceRow& row : traces.rows) put_row(head, row);
  head.close(']');
  head.close('}');
}

}  // namespace phlox::exporters
