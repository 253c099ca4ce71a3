#include "phlox/view/whole_waits.h"

#include <algorithm>
#include <map>

#include "phlox/view/quality.h"

namespace phlox::view {

using namespace profile;

namespace {

// Starts of samples have a resolution of one microsecond.
constexpr Nanoseconds kRounding = 2'000;

struct Going {
  OngoingWait wait;
  std::vector<size_t> samples;
};

bool begins_at(const Sample& sample, Nanoseconds end) {
  return sample.start <= end + kRounding && end <= sample.start + kRounding;
}

}  // namespace

bool OngoingWait::take(const Sample& sample) {
  const bool goes_on =
      !is_over && stack == sample.stack && system_call == sample.system_call && begins_at(sample, end);
  *this = {sample.stack, sample.system_call, sample.start + sample.wall, false};
  return goes_on;
}

bool begins_at_the_end_of(const Sample& sample, const Sample& before) {
  return begins_at(sample, before.start + before.wall);
}

bool is_ended_wait(const Sample& sample) {
  return sample.cpu_state == CpuState::blocked && sample.gil_state != GilState::waits;
}

std::vector<WakerId> wakers_of_whole_waits(const Profile& profile) {
  if (profile.wakers().empty()) return {};
  std::vector<WakerId> wakers(profile.samples().size());
  std::map<ThreadId, Going> going;
  for (size_t i = 0; i < wakers.size(); ++i) {
    const Sample& sample = profile.samples()[i];
    if (!is_ended_wait(sample)) continue;
    auto& [wait, samples] = going[sample.thread];
    if (!wait.take(sample)) samples.clear();
    samples.push_back(i);
    if (!sample.waker || sample.waker.value > profile.wakers().size()) continue;
    for (const size_t part : samples) wakers[part] = sample.waker;
    wait.is_over = true;
  }
  return wakers;
}

bool waits_are_exact(const Profile& profile) {
  const auto& processes = profile.processes();
  return !processes.empty() && std::all_of(processes.begin(), processes.end(), [](const auto& process) {
    return process.python_version.empty() || is_in_kernel(process.mode);
  });
}

}  // namespace phlox::view
