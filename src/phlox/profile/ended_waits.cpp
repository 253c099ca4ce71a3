#include "phlox/profile/ended_waits.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

namespace phlox::profile {
namespace {

// Starts of samples are kept to the microsecond.
constexpr Nanoseconds kRounding = 2'000;

// A long wait is several samples, the last of which knows who ended it.
struct Going {
  StackId stack;
  int16_t system_call = -1;
  Nanoseconds end = 0, wall = 0;

  bool goes_on_with(const Sample& sample) const {
    return stack == sample.stack && system_call == sample.system_call && sample.start <= end + kRounding &&
           end <= sample.start + kRounding;
  }
};

bool is_wait(const Sample& sample) {
  return sample.cpu_state == CpuState::blocked && sample.gil_state != GilState::waits;
}

}  // namespace

std::vector<EndedWaits> ended_waits(const Profile& profile, const SampleFilter& filter,
                                    const AlikeAwaited& awaited) {
  if (profile.wakes().empty()) return {};
  // A pool's threads are one where it is known what they did.
  using Key = std::tuple<WaitClass, int16_t, uint32_t, FrameId, ThreadId, FrameId, std::string>;
  struct Sum {
    uint64_t count = 0;
    Nanoseconds wall = 0;
    std::set<ThreadId> threads;
    std::map<ThreadId, Nanoseconds> by;
    std::set<std::string_view> others;  // of one command
  };
  std::map<Key, Sum> sums;
  std::map<ThreadId, Going> going;
  WaitClasses classes(profile);
  for (const Sample& sample : profile.samples()) {
    if (!is_wait(sample)) continue;
    const auto part = filter.part_of_everything(sample);
    if (!part.passes) continue;
    Going& wait = going[sample.thread];
    if (!wait.goes_on_with(sample)) wait = {sample.stack, sample.system_call, sample.start, 0};
    wait.end = sample.start + sample.wall;
    wait.wall += part.wall;
    if (!sample.wake || sample.wake.value > profile.wakes().size()) continue;
    const Wake& wake = profile.wakes()[sample.wake.value - 1];
    const FrameId by_frame = asking_frame(profile, wake.stack);
    Sum& sum = sums[{classes.of(sample), sample.system_call, awaited.of(sample.awaited),
                     asking_frame(profile, sample.stack), by_frame ? ThreadId() : wake.thread, by_frame,
                     std::string(without_number(wake.other))}];
    if (!wake.other.empty()) sum.others.insert(wake.other);
    if (wake.thread) sum.by[wake.thread] += wait.wall;
    ++sum.count;
    sum.wall += wait.wall;
    sum.threads.insert(sample.thread);
    wait = {};
  }
  std::vector<EndedWaits> rows;
  for (const auto& [key, sum] : sums) {
    const auto& [waits, system_call, what, frame, by, by_frame, other] = key;
    const auto most = std::max_element(sum.by.begin(), sum.by.end(),
                                       [](const auto& a, const auto& b) { return a.second < b.second; });
    rows.push_back({.waits = waits,
                    .system_call = system_call,
                    .awaited = what,
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

}  // namespace phlox::profile
