#include "phlox/exporters/page_size.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace phlox::exporters {
namespace {

constexpr Nanoseconds kMillisecond = 1'000'000;

struct Step {
  Nanoseconds window;
  double rare_share;
};
// Windows of ten or more samples at the default rate still show what a thread did when; a stack with a
// millionth of the time is a thousandth of a pixel.
constexpr Step kSteps[kMergeSteps] = {
    {10 * kMillisecond, 0},  {20 * kMillisecond, 0},  {50 * kMillisecond, 0}, {100 * kMillisecond, 0},
    {200 * kMillisecond, 0}, {500 * kMillisecond, 0}, {kSecond, 0},           {kSecond, 1e-6},
    {kSecond, 1e-5},         {2 * kSecond, 1e-4},     {5 * kSecond, 1e-3},    {20 * kSecond, 3e-3},
    {60 * kSecond, 1e-2},    {3600 * kSecond, 3e-2}};

Nanoseconds window_of(Nanoseconds start, Nanoseconds window) {
  return start >= 0 ? start / window : -1 - (-1 - start) / window;
}

// Spans of one thread with the same stack, state, doing, wait and endpoint become one within a window; a
// window's spans lie end to end.
void merge_windows(std::vector<PageSpan>& spans, Nanoseconds window) {
  std::vector<PageSpan> merged;
  // By node << 32 | state << 16 | event << 3 | doing, and wait << 32 | endpoint.
  std::map<std::pair<uint64_t, uint64_t>, size_t> known;
  for (size_t i = 0; i < spans.size();) {
    const uint32_t thread = spans[i].thread;
    const Nanoseconds which = window_of(spans[i].start, window);
    Nanoseconds at = spans[i].start;
    const size_t first = merged.size();
    known.clear();
    for (; i < spans.size() && spans[i].thread == thread && window_of(spans[i].start, window) == which; ++i) {
      const PageSpan& span = spans[i];
      const auto [found, added] =
          known.try_emplace({uint64_t{span.node} << 32 | uint64_t{span.state} << 16 |
                                 uint64_t{span.event} << 3 | static_cast<uint64_t>(span.doing),
                             uint64_t{span.wait} << 32 | span.endpoint},
                            merged.size());
      if (added) {
        merged.push_back(span);
        continue;
      }
      PageSpan& into = merged[found->second];
      into.wall += span.wall;
      into.cpu += span.cpu;
      into.samples += span.samples;
      into.value += span.value;
      into.cpu_number = span.cpu_number;
    }
    for (size_t j = first; j < merged.size(); ++j) {
      merged[j].start = at;
      at += merged[j].wall;
    }
  }
  spans = std::move(merged);
}

// A stack with less than `least` of its own ends at a marker below the caller of its innermost frame; markers
// with too little move further out. Returns the time that was moved.
Nanoseconds cut_rare(PageTables& tables, Nanoseconds least) {
  const size_t count = tables.nodes.size();
  std::vector<Nanoseconds> self(count, 0), pool(count, 0);
  Nanoseconds moved = 0;
  // A stack with event counts stays as it is.
  std::vector<bool> counted(count, false);
  for (const PageSpan& span : tables.spans) {
    self[span.node] += span.wall;
    if (span.value != 0) counted[span.node] = true;
  }
  std::vector<bool> cut(count, false), spilt(count, false);  // own time, the marker's
  for (size_t i = count; i-- > 1;) {
    const uint32_t parent = tables.nodes[i].parent;
    // Children of the root stay: our markers, and thread start functions.
    if (parent == 0) continue;
    if (self[i] < least && !counted[i]) {
      cut[i] = true;
      pool[parent] += self[i];
      moved += self[i];
    }
    if (pool[i] < least) {
      spilt[i] = true;
      pool[parent] += pool[i];
    }
  }
  const auto function = static_cast<uint32_t>(tables.functions.size());
  tables.functions.push_back({left_out_label(), {}, 0});
  const auto place = static_cast<uint32_t>(tables.places.size());
  tables.places.push_back({function, 0});
  std::vector<uint32_t> marker(count, 0);
  for (PageSpan& span : tables.spans) {
    if (!cut[span.node]) continue;
    uint32_t at = tables.nodes[span.node].parent;
    while (spilt[at]) at = tables.nodes[at].parent;
    if (marker[at] == 0) {
      marker[at] = static_cast<uint32_t>(tables.nodes.size());
      tables.nodes.push_back({at, place});
    }
    span.node = marker[at];
  }
  return moved;
}

// A wait with less than `least` keeps only what it waited for; if that still has less, the wait is dropped.
void cut_waits(PageTables& tables, Nanoseconds least) {
  const auto sums = [&] {
    std::vector<Nanoseconds> wall(tables.waits.size(), 0);
    for (const PageSpan& span : tables.spans) wall[span.wait] += span.wall;
    return wall;
  };
  const auto renumber = [&](const std::vector<uint32_t>& numbers) {
    for (PageSpan& span : tables.spans) span.wait = numbers[span.wait];
  };
  const auto wall = sums();
  std::map<std::string, uint32_t> known;
  std::vector<uint32_t> numbers(wall.size(), 0);
  for (size_t i = 1; i < wall.size(); ++i) {
    numbers[i] = static_cast<uint32_t>(i);
    if (wall[i] >= least) continue;
    const std::string words = tables.waits[i].words;
    const auto [at, added] = known.try_emplace(words, static_cast<uint32_t>(tables.waits.size()));
    if (added) tables.waits.push_back({.words = words, .which = {}});
    numbers[i] = at->second;
  }
  renumber(numbers);
  const auto left = sums();
  std::vector<PageWait> waits(1);
  numbers.assign(left.size(), 0);
  for (size_t i = 1; i < left.size(); ++i) {
    if (left[i] < least) continue;
    numbers[i] = static_cast<uint32_t>(waits.size());
    waits.push_back(std::move(tables.waits[i]));
  }
  tables.waits = std::move(waits);
  renumber(numbers);
}

}  // namespace

view::Label left_out_label() {
  return {profile::FrameKind::marker, "(frames left out to fit the page)", {}, 0, {}, {}};
}

PageMerge merge_page(PageTables& tables, size_t step) {
  const Step& asked = kSteps[step];
  PageMerge done;
  done.window = asked.window;
  done.rare_share = asked.rare_share;
  done.spans_before = tables.spans.size();
  done.nodes_before = tables.nodes.size();
  if (asked.rare_share > 0) {
    Nanoseconds wall = 0;
    for (const PageSpan& span : tables.spans) wall += span.wall;
    const auto least = static_cast<Nanoseconds>(asked.rare_share * double(wall));
    done.cut_wall = cut_rare(tables, least);
    cut_waits(tables, std::max<Nanoseconds>(least, 1));
    settle(tables);
  }
  merge_windows(tables.spans, asked.window);
  done.spans_after = tables.spans.size();
  done.nodes_after = tables.nodes.size();
  return done;
}

}  // namespace phlox::exporters
