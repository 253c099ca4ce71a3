#include "phlox/view/ended_waits.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "phlox/view/whole_waits.h"

namespace phlox::view {

using namespace profile;

std::vector<EndedWaits> ended_waits(const Profile& profile, const SampleFilter& filter,
                                    const WaitTargetGroups& wait_targets) {
  const std::vector<WakerId> wakers = wakers_of_whole_waits(profile);
  // Threads of a pool count as one if it is known what they did.
  using Key = std::tuple<WaitClass, int16_t, uint32_t, FrameId, ThreadId, FrameId, std::string>;
  struct Sum {
    uint64_t count = 0;
    Nanoseconds wall = 0;
    std::set<ThreadId> threads;
    std::map<ThreadId, Nanoseconds> by;
    std::set<std::string_view> others;  // of one command
  };
  std::map<Key, Sum> sums;
  WaitClasses classes(profile);
  for (size_t i = 0; i < wakers.size(); ++i) {
    const Sample& sample = profile.samples()[i];
    if (!wakers[i]) continue;
    const auto part = filter.part_of_everything(sample);
    if (!part.passes) continue;
    const Waker& waker = profile.wakers()[wakers[i].value - 1];
    const FrameId by_frame = asking_frame(profile, waker.stack);
    Sum& sum = sums[{classes.of(sample), sample.system_call, wait_targets.of(sample.wait_target),
                     asking_frame(profile, sample.stack), by_frame ? ThreadId() : waker.thread, by_frame,
                     std::string(without_number(waker.other))}];
    if (!waker.other.empty()) sum.others.insert(waker.other);
    if (waker.thread) sum.by[waker.thread] += part.wall;
    if (sample.waker) ++sum.count;
    sum.wall += part.wall;
    sum.threads.insert(sample.thread);
  }
  // Only the beginning of these passes the filter.
  std::erase_if(sums, [](const auto& one) { return one.second.count == 0; });
  std::vector<EndedWaits> rows;
  for (const auto& [key, sum] : sums) {
    const auto& [waits, system_call, what, frame, by, by_frame, other] = key;
    const auto most = std::max_element(sum.by.begin(), sum.by.end(),
                                       [](const auto& a, const auto& b) { return a.second < b.second; });
    rows.push_back({.waits = waits,
                    .system_call = system_call,
                    .wait_target = what,
                    .frame = frame,
                    .by = most == sum.by.end() ? ThreadId() : most->first,
                    .by_threads = static_cast<uint32_t>(sum.by.size()),
                    .by_frame = by_frame,
                    .other = sum.others.size() == 1 ? std::string(*sum.others.begin())
                             : other.empty()        ? other
                                             : fmt::format("{} ({} processes)", other, sum.others.size()),
                    .count = sum.count,
                    .threads = static_cast<uint32_t>(sum.threads.size()),
                    .wall = sum.wall});
  }
  std::stable_sort(rows.begin(), rows.end(),
                   [](const EndedWaits& a, const EndedWaits& b) { return a.wall > b.wall; });
  return rows;
}

}  // namespace phlox::view
