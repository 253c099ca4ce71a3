#include "phlox/view/whole_waits.h"

#include <gtest/gtest.h>

#include "phlox/view/quality.h"

#include "support/profile_of.h"

namespace phlox::view {

using namespace profile;

namespace {

constexpr Nanoseconds kMillisecond = 1'000'000;

Sample wait(test::ProfileMaker& make, ThreadId thread, const std::string& frames, uint32_t waker = 0) {
  Sample sample = make.sample(thread, frames, kMillisecond);
  sample.cpu_state = CpuState::blocked;
  sample.system_call = 202;
  sample.waker = WakerId(waker);
  return sample;
}

TEST(whole_waits, all_of_a_wait_has_the_wake_of_its_end) {
  Profile profile;
  test::ProfileMaker make(profile);
  profile.emit(WakerId(1), {ThreadId(1), {}, {}});
  const ThreadId one = make.thread("one"), two = make.thread("two");
  make.put(wait(make, one, "main;get"));
  make.put(wait(make, two, "main;get"));
  make.put(wait(make, one, "main;get"));
  make.put(wait(make, one, "main;get", 1));
  make.put(wait(make, one, "main;get"));  // another one, that goes on
  EXPECT_EQ(wakers_of_whole_waits(profile),
            (std::vector<WakerId>{WakerId(1), WakerId(), WakerId(1), WakerId(1), WakerId()}));
}

TEST(whole_waits, another_stack_or_something_between_is_another_wait) {
  Profile profile;
  test::ProfileMaker make(profile);
  profile.emit(WakerId(1), {ThreadId(1), {}, {}});
  const ThreadId one = make.thread("one");
  make.put(wait(make, one, "main;put"));
  make.put(wait(make, one, "main;get"));
  make.add(one, "main;get", kMillisecond);  // it ran
  make.put(wait(make, one, "main;get", 1));
  EXPECT_EQ(wakers_of_whole_waits(profile),
            (std::vector<WakerId>{WakerId(), WakerId(), WakerId(), WakerId(1)}));
}

TEST(whole_waits, a_recording_without_wakers_has_none) {
  Profile profile;
  test::ProfileMaker make(profile);
  make.put(wait(make, make.thread("one"), "main"));
  EXPECT_TRUE(wakers_of_whole_waits(profile).empty());
}

TEST(WholeWaits, the_kernel_mode_with_native_frames_counts_too) {
  EXPECT_TRUE(is_in_kernel("in the kernel (BPF), with native frames, the kernel's too"));
  EXPECT_FALSE(is_in_kernel("same CPU (real time)"));
}

}  // namespace
}  // namespace phlox::view
