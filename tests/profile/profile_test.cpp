#include "phlox/profile/profile.h"

#include <gtest/gtest.h>

namespace phlox::profile {
namespace {

TEST(Profile, emit_all_emits_each_kind_of_row) {
  Profile from;
  from.emit_meta("key", "value");
  Process process;
  process.pid = 7;
  from.emit(ProcessId(1), process);
  Thread thread;
  thread.tid = 8;
  from.emit(ThreadId(1), thread);
  Module module;
  module.path = "/lib/libfoo.so";
  from.emit(ModuleId(1), module);
  Frame frame;
  frame.function = "work";
  from.emit(FrameId(1), frame);
  Stack stack;
  stack.frame = FrameId(1);
  from.emit(StackId(1), stack);
  Waker waker;
  waker.thread = ThreadId(1);
  from.emit(WakerId(1), waker);
  WaitTarget wait_target;
  wait_target.name = "127.0.0.1:5432";
  from.emit(WaitTargetId(1), wait_target);
  Sample sample;
  sample.wall = 3;
  from.emit(SampleId(1), sample);
  Event event;
  event.text = "began";
  from.emit(event);
  from.emit(Counter{ProcessId(1), "ticks", 3});

  Profile into;
  from.emit_all(into);
  EXPECT_EQ(into.meta(), from.meta());
  ASSERT_EQ(into.processes().size(), 1U);
  EXPECT_EQ(into.processes()[0].pid, 7);
  ASSERT_EQ(into.threads().size(), 1U);
  EXPECT_EQ(into.threads()[0].tid, 8);
  ASSERT_EQ(into.modules().size(), 1U);
  EXPECT_EQ(into.modules()[0].path, "/lib/libfoo.so");
  EXPECT_EQ(into.frames(), from.frames());
  ASSERT_EQ(into.stacks().size(), 1U);
  EXPECT_EQ(into.stacks()[0].frame, FrameId(1));
  EXPECT_EQ(into.wakers(), from.wakers());
  EXPECT_EQ(into.wait_targets(), from.wait_targets());
  ASSERT_EQ(into.samples().size(), 1U);
  EXPECT_EQ(into.samples()[0].wall, 3);
  ASSERT_EQ(into.events().size(), 1U);
  EXPECT_EQ(into.events()[0].text, "began");
  EXPECT_EQ(into.counter("ticks"), 3);
}

}  // namespace
}  // namespace phlox::profile
