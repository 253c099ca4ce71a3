#include "phlox/view/unread_fetches.h"

#include <algorithm>
#include <map>
#include <vector>

#include "phlox/view/markers.h"
#include "phlox/view/whole_waits.h"
#include "phlox/view/work.h"

namespace phlox::view {

using namespace profile;

namespace {

bool waits_for_cpu(const Sample& sample) {
  return sample.cpu_state == CpuState::runnable && sample.gil_state != GilState::waits;
}

}  // namespace

UnreadFetches::UnreadFetches(const Profile& profile) {
  std::vector<bool> unread(profile.stacks().size() + 1);
  bool any = false;
  for (uint32_t i = 1; i < unread.size(); ++i) {
    unread[i] = is_not_read(profile, StackId(i));
    any = any || unread[i];
  }
  if (!any) return;
  const auto is_unread = [&](const Sample& sample) {
    return sample.quality != Quality::rejected && sample.stack.value < unread.size() &&
           unread[sample.stack.value] && (is_ended_wait(sample) || waits_for_cpu(sample));
  };
  std::map<uint32_t, std::vector<const Sample*>> threads;
  for (const Sample& sample : profile.samples())
    if (is_unread(sample)) threads[sample.thread.value].push_back(&sample);
  if (threads.empty()) return;
  const WorkRule rule(profile);
  for (auto& [thread, samples] : threads) {
    std::stable_sort(samples.begin(), samples.end(),
                     [](const Sample* a, const Sample* b) { return a->start < b->start; });
    const Sample* before = nullptr;  // that is known
    for (const Sample* sample : samples) {
      const bool is_fetch = is_ended_wait(*sample)
                                ? rule.of(*sample) == Doing::waiting_for_work
                                : before != nullptr && begins_at_the_end_of(*sample, *before);
      before = is_fetch ? sample : nullptr;
      if (is_fetch) known_.insert(key_of(*sample));
    }
  }
}

}  // namespace phlox::view
