// Native halves of this thread, and made-up ones.
#include "phlox/sampler/assemble/native_stacks.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "phlox/memory/process_memory.h"
#include "phlox/profile/profile.h"
#include "phlox/sampler/assemble/consumer.h"

namespace phlox::sampler {
namespace {

uint64_t end_of_own_stack() {
  pthread_attr_t attributes;
  void* start = nullptr;
  size_t size = 0;
  ::pthread_getattr_np(::pthread_self(), &attributes);
  ::pthread_attr_getstack(&attributes, &start, &size);
  ::pthread_attr_destroy(&attributes);
  return reinterpret_cast<uint64_t>(start) + size;
}

class NativeStacksOf : public testing::Test {
 protected:
  // The frame that calls this one: where it is, and its stack from there on.
  __attribute__((noinline)) void sample_here(size_t most = size_t{100} << 10) {
    ucontext_t here;
    ::getcontext(&here);
#if defined(__x86_64__)
    sample_.head.pc = static_cast<uint64_t>(here.uc_mcontext.gregs[REG_RIP]);
    sample_.head.sp = static_cast<uint64_t>(here.uc_mcontext.gregs[REG_RSP]);
    sample_.head.fp = static_cast<uint64_t>(here.uc_mcontext.gregs[REG_RBP]);
    sample_.head.bx = static_cast<uint64_t>(here.uc_mcontext.gregs[REG_RBX]);
    sample_.head.bx_known = true;
#else
    sample_.head.pc = here.uc_mcontext.pc;
    sample_.head.sp = here.uc_mcontext.sp;
    sample_.head.fp = here.uc_mcontext.regs[29];
    sample_.head.lr = here.uc_mcontext.regs[30];
    sample_.head.lr_known = true;
#endif
    sample_.head.fp_known = true;
    sample_.head.stack_start = sample_.head.sp;
    copy_.resize(std::min<size_t>(end_of_own_stack() - sample_.head.sp, most));
    std::memcpy(copy_.data(), reinterpret_cast<const void*>(sample_.head.sp), copy_.size());
    sample_.stack = copy_;
  }
  // Stands for an interpreter loop, whose anchor is on its stack.
  __attribute__((noinline)) void evaluate(size_t most = size_t{100} << 10) {
    volatile uint64_t anchor = 0;
    sample_here(most);
    sample_.starts.push_back({reinterpret_cast<uint64_t>(&anchor), 0, 0});
    anchor = 1;
  }

  profile::FrameId python(const std::string& name) {
    profile::Frame frame;
    frame.function = frame.qualified_name = name;
    return identities_.interner.frame(frame);
  }
  // Leaf first.
  std::vector<profile::Frame> merged(const std::vector<profile::FrameId>& frames = {}) {
    last_ = stacks_.merge(sample_, frames);
    std::vector<profile::Frame> all;
    for (auto at = last_.id; at; at = seen_.stack(at).parent)
      all.push_back(seen_.frame(seen_.stack(at).frame));
    return all;
  }

  profile::Profile seen_;
  Identities identities_{seen_};
  memory::ProcessMemory memory_{::getpid()};
  NativeStacks stacks_{::getpid(), memory_, identities_, seen_, {}};
  NativeSample sample_;
  std::vector<std::byte> copy_;
  NativeStacks::Stack last_;
};

TEST_F(NativeStacksOf, a_whole_stack_leads_from_here_to_the_threads_start) {
  sample_here();
  const auto frames = merged();
  EXPECT_FALSE(last_.cut);
  EXPECT_EQ(stacks_.counts().samples, 1U);
  EXPECT_EQ(stacks_.counts().whole, 1U);
  EXPECT_EQ(stacks_.counts().cut, 0U);
  ASSERT_GT(frames.size(), 3U);
  for (const auto& frame : frames) EXPECT_EQ(frame.kind, profile::FrameKind::native) << frame.function;
  const profile::Module& own =
      seen_.modules().at(frames.front().module.value_or(profile::ModuleId(1)).value - 1);
  EXPECT_NE(own.path.find("sampler_tests"), std::string::npos) << own.path;
  EXPECT_TRUE(frames.front().module.has_value() && frames.back().module.has_value());
}

TEST_F(NativeStacksOf, the_same_stack_has_the_same_id) {
  sample_here();
  merged();
  const auto first = last_.id;
  merged();
  EXPECT_EQ(last_.id, first);
  EXPECT_EQ(stacks_.counts().samples, 2U);
}

TEST_F(NativeStacksOf, python_frames_stand_on_the_loop_that_has_their_anchor) {
  evaluate();
  const auto frames = merged({python("main"), python("work")});
  EXPECT_FALSE(last_.cut);
  EXPECT_EQ(stacks_.counts().unmerged, 0U);
  const auto work =
      std::find_if(frames.begin(), frames.end(), [](const auto& frame) { return frame.function == "work"; });
  ASSERT_NE(work, frames.end());
  ASSERT_GT(std::distance(work, frames.end()), 2);
  EXPECT_EQ(std::next(work)->function, "main");
  EXPECT_EQ(std::next(work, 2)->role, profile::FrameRole::interpreter_loop);
  EXPECT_EQ(
      std::count_if(frames.begin(), frames.end(),
                    [](const auto& frame) { return frame.role == profile::FrameRole::interpreter_loop; }),
      1);
}

TEST_F(NativeStacksOf, python_frames_without_a_place_are_kept_and_counted) {
  sample_here();
  sample_.starts.push_back({1, 0, 0});
  const auto frames = merged({python("main")});
  EXPECT_EQ(
      std::count_if(frames.begin(), frames.end(), [](const auto& frame) { return frame.function == "main"; }),
      1);
  EXPECT_EQ(stacks_.counts().unmerged, 1U);
  EXPECT_EQ(stacks_.counts().whole, 0U);
}

TEST_F(NativeStacksOf, a_stack_that_was_not_copied_whole_says_so) {
  sample_here(256);
  const auto frames = merged();
  EXPECT_TRUE(last_.cut);
  EXPECT_EQ(stacks_.counts().cut, 1U);
  EXPECT_EQ(frames.front().kind, profile::FrameKind::native);
  EXPECT_EQ(frames.back().kind, profile::FrameKind::marker);
  EXPECT_NE(frames.back().function.find("deeper than what was copied"), std::string::npos)
      << frames.back().function;
}

TEST_F(NativeStacksOf, of_registers_that_make_no_sense_the_python_frames_remain) {
  sample_.head.pc = 0x10;
  sample_.head.sp = 0x20;
  const auto frames = merged({python("main")});
  EXPECT_TRUE(last_.cut);
  EXPECT_EQ(stacks_.counts().cut, 1U);
  EXPECT_EQ(
      std::count_if(frames.begin(), frames.end(), [](const auto& frame) { return frame.function == "main"; }),
      1);
}

TEST_F(NativeStacksOf, the_kernels_frames_are_the_innermost_and_one_module) {
  sample_here();
  sample_.kernel = {0xffffffff81000010, 0xffffffff81000100, 0xffffffff81000100};
  const auto frames = merged();
  ASSERT_GT(frames.size(), 4U);
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(frames[i].kind, profile::FrameKind::kernel) << i;
  EXPECT_EQ(frames[0].address, 0xffffffff81000010U) << "where it is";
  EXPECT_EQ(frames[1].address, 0xffffffff810000ffU) << "inside the call";
  EXPECT_EQ(frames[3].kind, profile::FrameKind::native);
  const auto& modules = seen_.modules();
  EXPECT_EQ(std::count_if(modules.begin(), modules.end(),
                          [](const auto& module) { return module.path == "[kernel]"; }),
            1);
}

TEST_F(NativeStacksOf, starts_that_contradict_each_other_lose_no_frame) {
  sample_here();
  sample_.starts = {{1, 7, 0}, {2, 1, 0}, {3, 0, 0}, {4, 1, 0}};
  const auto frames = merged({python("a"), python("b")});
  EXPECT_EQ(std::count_if(frames.begin(), frames.end(),
                          [](const auto& frame) { return frame.kind == profile::FrameKind::python; }),
            2);
}

TEST_F(NativeStacksOf, modules_of_frames_can_be_opened_later) {
  sample_here();
  merged();
  const auto modules = stacks_.take_modules();
  const auto own = std::find_if(modules.begin(), modules.end(), [](const NativeModule& module) {
    return module.path.find("sampler_tests") != std::string::npos;
  });
  ASSERT_NE(own, modules.end());
  EXPECT_TRUE(own->descriptor != nullptr && own->descriptor->is_open());
}

}  // namespace
}  // namespace phlox::sampler
