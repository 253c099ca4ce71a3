#include "phlox/view/loop_threads.h"

#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "phlox/view/loop_stacks.h"
#include "phlox/view/wait_places.h"

namespace phlox::view {

using namespace profile;

namespace {

// As WaitPlaces names it. uvloop runs asyncio's tasks, and is named like it.
std::string_view kind_of(const EventLoop& loop) {
  return loop.type == "trio" ? "trio" : "asyncio";
}

using KindOfProcess = std::pair<ProcessId, std::string_view>;

std::map<KindOfProcess, std::set<ThreadId>> threads_with_loops(const Profile& profile) {
  const WaitPlaces places(profile);
  LoopStacks stacks(profile, places);
  std::map<KindOfProcess, std::set<ThreadId>> out;
  for (const Sample& sample : profile.samples()) {
    const uint32_t loop = stacks.loop(sample);
    if (loop == 0 || !sample.thread || sample.thread.value > profile.threads().size()) continue;
    out[{profile.thread(sample.thread).process, places.name(loop)}].insert(sample.thread);
  }
  return out;
}

}  // namespace

void name_loop_threads(TaskRows& tasks, const Profile& profile) {
  if (std::all_of(tasks.loops.begin(), tasks.loops.end(), [](const EventLoop& loop) { return loop.thread; }))
    return;
  std::map<KindOfProcess, size_t> loops;
  for (const EventLoop& loop : tasks.loops) ++loops[{loop.process, kind_of(loop)}];
  const auto threads = threads_with_loops(profile);
  for (EventLoop& loop : tasks.loops) {
    const KindOfProcess key(loop.process, kind_of(loop));
    const auto found = threads.find(key);
    if (loop.thread || found == threads.end() || found->second.size() != 1 || loops[key] != 1) continue;
    loop.thread = *found->second.begin();
  }
}

}  // namespace phlox::view
