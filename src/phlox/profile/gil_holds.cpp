#include "phlox/profile/gil_holds.h"

#include <algorithm>
#include <map>
#include <utility>

namespace phlox::profile {
namespace {

Nanoseconds end(const Sample* sample) {
  return sample->start + sample->wall;
}

}  // namespace

GilHolds::GilHolds(const Profile& profile) : profile_(profile) {
  for (const Sample& sample : profile.samples()) {
    if (sample.gil_state == GilState::holds && sample.wall > 0 && sample.thread &&
        sample.thread.value <= profile.threads().size())
      holds_.push_back(&sample);
  }
  std::sort(holds_.begin(), holds_.end(),
            [](const Sample* a, const Sample* b) { return a->start < b->start; });
}

GilPlace GilHolds::holder(const std::vector<const Sample*>& waits) const {
  if (waits.empty()) return {};
  const Thread& own = profile_.thread(waits[0]->thread);
  Nanoseconds waited = 0;
  for (const Sample* wait : waits) waited += wait->wall;
  std::map<ThreadId, Nanoseconds> threads;
  std::map<std::pair<ThreadId, FrameId>, Nanoseconds> places;
  // No row is longer than a second; starts are kept to the microsecond.
  auto hold = std::lower_bound(holds_.begin(), holds_.end(), waits[0]->start - 2 * kSecond,
                               [](const Sample* one, Nanoseconds start) { return one->start < start; });
  for (; hold != holds_.end() && (*hold)->start < end(waits.back()); ++hold) {
    const Thread& thread = profile_.thread((*hold)->thread);
    if ((*hold)->thread == waits[0]->thread || thread.process != own.process ||
        thread.interpreter != own.interpreter)
      continue;
    auto wait = std::lower_bound(waits.begin(), waits.end(), (*hold)->start,
                                 [](const Sample* one, Nanoseconds start) { return end(one) <= start; });
    for (; wait != waits.end() && (*wait)->start < end(*hold); ++wait) {
      const Nanoseconds both = std::min(end(*wait), end(*hold)) - std::max((*wait)->start, (*hold)->start);
      threads[(*hold)->thread] += both;
      places[{(*hold)->thread, innermost_python(profile_, (*hold)->stack)}] += both;
    }
  }
  GilPlace holder;
  for (const auto& [thread, wall] : threads) {
    if (2 * wall >= waited && wall > holder.wall) holder = {thread, {}, wall};
  }
  for (const auto& [place, wall] : places) {
    if (place.first == holder.thread && 2 * wall >= waited) holder.frame = place.second;
  }
  return holder;
}

}  // namespace phlox::profile
