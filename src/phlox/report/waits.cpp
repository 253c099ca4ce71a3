#include "phlox/report/waits.h"

#include <tsl/robin_map.h>
#include <tsl/robin_set.h>

#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <utility>

#include "phlox/base/spread.h"
#include "phlox/view/stack_places.h"
#include "phlox/view/system_calls.h"

namespace phlox::report {
namespace {

WaitKind kind_of(view::WaitClass waits) {
  return waits == view::WaitClass::gil   ? WaitKind::gil
         : waits == view::WaitClass::cpu ? WaitKind::cpu
                                         : WaitKind::system_call;
}

template <class Row>
void put_wait_target(Row& row, const profile::WaitTargetGroups& wait_targets, uint32_t group) {
  if (group == 0) return;
  row.wait_target_kind = profile::wait_target_key(wait_targets[group].kind);
  row.wait_target = wait_targets[group].words;
}

// Time of one place by native frame.
using NativeTimes = std::map<uint32_t, Nanoseconds>;

NativeBeneath longest_native(const profile::Profile& profile, const NativeTimes& times, Nanoseconds wall) {
  std::map<std::string, std::pair<Nanoseconds, uint32_t>> functions;  // by full name
  for (const auto& [frame, time] : times) {
    auto& [sum, known] = functions[view::function_label(profile, profile::FrameId(frame)).whole_name()];
    sum += time;
    known = frame;
  }
  const auto longest = std::max_element(functions.begin(), functions.end(), [](const auto& a, const auto& b) {
    return a.second.first < b.second.first;
  });
  if (longest == functions.end() || wall <= 0) return {};
  NativeBeneath native = native_beneath(profile, profile::FrameId(longest->second.second));
  native.share = double(longest->second.first) / double(wall);
  return native;
}

// Finds the caller with most of a place's time. Callers are frames of asking_frame().
void put_called_from(WaitRow& row, const profile::Profile& profile, uint32_t place,
                     const std::map<uint32_t, Nanoseconds>& callers) {
  const auto longest = std::max_element(callers.begin(), callers.end(),
                                        [](const auto& a, const auto& b) { return a.second < b.second; });
  if (longest == callers.end() || 2 * longest->second <= row.wall) return;
  if (longest->first == 0 || longest->first == place) return;
  const auto label = view::line_label(profile, profile::FrameId(longest->first));
  row.called_from = label.name;
  row.called_from_file = label.file;
  row.called_from_line = label.line;
}

// Waiting by reason, system call, wait target and place.
struct WaitSum {
  view::WaitClass waits = view::WaitClass::none;
  int16_t system_call = -1;
  uint32_t frame = 0, wait_target = 0;
  Nanoseconds wall = 0, for_work = 0, not_known = 0;
  uint32_t threads = 0;
  NativeTimes natives = {};
  std::map<uint32_t, Nanoseconds> callers = {};  // by frame
};

// `whole`: the time of all samples, waiting or not.
WaitRow row_of(const profile::Profile& profile, const profile::WaitTargetGroups& wait_targets,
               const WaitSum& sum, Nanoseconds whole) {
  WaitRow row;
  row.kind = kind_of(sum.waits);
  row.waits = sum.waits;
  row.what = row.kind == WaitKind::system_call
                 ? view::system_call_name(sum.system_call, view::machine_of(profile))
                 : std::string(view::wait_class_words(sum.waits));
  put_wait_target(row, wait_targets, sum.wait_target);
  if (sum.frame != 0) {
    const auto label = view::line_label(profile, profile::FrameId(sum.frame));
    row.name = label.name;
    row.file = label.file;
    row.line = label.line;
    row.has_place = profile.frame(profile::FrameId(sum.frame)).kind != profile::FrameKind::marker;
  } else {
    row.name = "(no Python frames)";
  }
  row.wall = sum.wall;
  row.for_work = sum.for_work;
  row.not_known = sum.not_known;
  row.share = whole > 0 ? double(sum.wall) / double(whole) : 0;
  row.threads = sum.threads;
  row.native = longest_native(profile, sum.natives, sum.wall);
  put_called_from(row, profile, sum.frame, sum.callers);
  return row;
}

}  // namespace

NativeBeneath native_beneath(const profile::Profile& profile, profile::FrameId frame) {
  const auto label = view::function_label(profile, frame);
  return {label.name, label.whole_name(), label.module, 0};
}

std::vector<WaitRow> find_waits(const profile::Profile& profile, const view::Choices& choices,
                                std::optional<profile::ThreadId> thread, size_t limit) {
  const auto filter = view::SampleFilter::make_judging(profile, choices);
  if (!filter) return {};
  view::WaitClasses classes(profile);
  const profile::WaitTargetGroups wait_targets(profile);
  const std::vector<view::StackPlace> stack_places = view::stack_places(profile);

  // Lookups for every sample use numbers.
  std::vector<WaitSum> sums;
  tsl::robin_map<uint64_t, uint32_t, Spread> kinds, places;
  tsl::robin_map<uint32_t, uint32_t> callers;  // asking_frame() by stack
  tsl::robin_set<uint64_t, Spread> met;        // place and thread
  Nanoseconds whole = 0;
  for (const profile::Sample& sample : profile.samples()) {
    if (thread && sample.thread != *thread) continue;
    const auto part = filter->part_of_everything(sample);
    if (!part.passes) continue;
    whole += part.wall;
    if (sample.quality == profile::Quality::rejected) continue;
    const view::WaitClass waits = classes.of(sample);
    if (waits == view::WaitClass::none) continue;
    const int16_t system_call = kind_of(waits) == WaitKind::system_call ? sample.system_call : int16_t{-1};
    view::StackPlace at;
    if (sample.stack && sample.stack.value < stack_places.size()) at = stack_places[sample.stack.value];
    const uint32_t frame = at.frame.value;
    const uint32_t what = wait_targets.of(sample.wait_target);
    const uint64_t kind =
        uint64_t{what} << 32 | static_cast<uint64_t>(waits) << 16 | static_cast<uint16_t>(system_call);
    const auto of_kind = kinds.try_emplace(kind, static_cast<uint32_t>(kinds.size())).first;
    const auto [place, added] =
        places.try_emplace(uint64_t{frame} << 32 | of_kind->second, static_cast<uint32_t>(sums.size()));
    if (added) sums.push_back({waits, system_call, frame, what});
    WaitSum& sum = sums[place->second];
    sum.wall += part.wall;
    if (at.native) sum.natives[at.native.value] += part.wall;
    const auto [caller, is_new] = callers.try_emplace(sample.stack.value, 0);
    if (is_new) caller.value() = view::asking_frame(profile, sample.stack).value;
    sum.callers[caller->second] += part.wall;
    if (part.doing == view::Doing::waiting_for_work) sum.for_work += part.wall;
    if (part.doing == view::Doing::waiting_unknown) sum.not_known += part.wall;
    sum.threads += met.insert(uint64_t{place->second} << 32 | sample.thread.value).second;
  }
  // A span may be so short that it takes no time.
  std::erase_if(sums, [](const WaitSum& sum) { return sum.wall == 0; });
  std::stable_sort(sums.begin(), sums.end(),
                   [](const WaitSum& x, const WaitSum& y) { return x.wall > y.wall; });
  if (sums.size() > limit) sums.resize(limit);
  std::vector<WaitRow> rows;
  for (const WaitSum& sum : sums) rows.push_back(row_of(profile, wait_targets, sum, whole));
  return rows;
}

std::vector<EndedWaitRow> find_ended_waits(const profile::Profile& profile,
                                           const std::vector<view::EndedWaits>& ended,
                                           const profile::WaitTargetGroups& wait_targets, size_t limit) {
  const std::string_view machine = view::machine_of(profile);
  std::vector<EndedWaitRow> rows;
  for (const view::EndedWaits& one : ended) {
    if (rows.size() == limit) break;
    EndedWaitRow row;
    row.waits = one.waits;
    row.what = view::system_call_name(one.system_call, machine);
    put_wait_target(row, wait_targets, one.wait_target);
    row.count = one.count;
    row.wall = one.wall;
    row.threads = one.threads;
    row.name = "(no Python frames)";
    if (one.frame) {
      const auto label = view::line_label(profile, one.frame);
      std::tie(row.name, row.file, row.line) = std::tie(label.name, label.file, label.line);
    }
    row.by_threads = one.by_threads;
    row.by = one.by ? view::thread_label(profile.thread(one.by)) : one.other;
    if (one.by_frame) {
      const auto label = view::line_label(profile, one.by_frame);
      std::tie(row.by_name, row.by_file, row.by_line) = std::tie(label.name, label.file, label.line);
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace phlox::report
