#include "phlox/view/kernel_frames.h"

#include <gtest/gtest.h>

#include "phlox/profile/profile.h"
#include "phlox/view/native_frames.h"

namespace phlox::view {

using namespace profile;

namespace {

TEST(KernelFrames, entry_of_a_system_call_is_one_and_the_call_is_none) {
  EXPECT_TRUE(is_kernel_entry("do_syscall_64"));
  EXPECT_TRUE(is_kernel_entry("el0_svc_common.constprop.0"));
  EXPECT_FALSE(is_kernel_entry("ksys_read"));
  EXPECT_FALSE(is_kernel_entry("do_syscall"));
  EXPECT_FALSE(is_kernel_entry(""));
}

// read() of the C library, and what the kernel does for it.
Profile a_read() {
  Profile profile;
  uint32_t id = 0;
  for (const char* name :
       {"read", "entry_SYSCALL_64_after_hwframe", "do_syscall_64", "ksys_read", "vfs_read"}) {
    Frame frame;
    frame.kind = id == 0 ? FrameKind::native : FrameKind::kernel;
    frame.function = frame.qualified_name = name;
    ++id;
    profile.emit(FrameId(id), frame);
    profile.emit(StackId(id), {StackId(id - 1), FrameId(id)});
  }
  Sample sample;
  sample.stack = StackId(id);
  profile.emit(SampleId(1), sample);
  return profile;
}

std::vector<std::string> shown(Profile profile, bool all_frames) {
  Choices choices;
  choices.all_frames = all_frames;
  show_native_frames(profile, choices);
  std::vector<std::string> names;
  for (StackId at = profile.samples().front().stack; at; at = profile.stacks()[at.value - 1].parent)
    names.push_back(profile.frame(profile.stacks()[at.value - 1].frame).function);
  return names;
}

TEST(KernelFrames, entries_are_folded_unless_all_frames_are_asked_for) {
  EXPECT_EQ(shown(a_read(), false), (std::vector<std::string>{"vfs_read", "ksys_read", "read"}));
  EXPECT_EQ(shown(a_read(), true), (std::vector<std::string>{"vfs_read", "ksys_read", "do_syscall_64",
                                                             "entry_SYSCALL_64_after_hwframe", "read"}));
}

}  // namespace
}  // namespace phlox::view
