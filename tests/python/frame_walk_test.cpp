#include "phlox/python/frame_walk.h"

#include <gtest/gtest.h>

#include "phlox/python/line_table.h"
#include "support/fake_interpreter.h"
#include "support/layout_rows.h"

namespace phlox::python {
namespace {

using test::FakeInterpreter;

class FrameWalk : public testing::TestWithParam<const Layout*> {
 protected:
  FrameWalk() : fake_(*GetParam()) {}

  WalkResult walk(const test::FakeThread& thread, size_t room = 100'000) {
    frames_.resize(room);
    const Layout& layout = *GetParam();
    const std::byte* state = fake_.memory().find(thread.state(), *layout.thread.size);
    bool unreadable = false;
    const RemoteAddress top = top_frame(layout, state, fake_.memory(), unreadable);
    EXPECT_FALSE(unreadable);
    const WalkResult result = walk_frames(layout, top, fake_.memory(), std::span(frames_));
    frames_.resize(result.count);
    return result;
  }
  void expect_stack(const test::FakeThread& thread) {
    const auto expected = thread.stack();
    ASSERT_EQ(frames_.size(), expected.size());
    for (size_t i = 0; i < expected.size(); ++i) {
      EXPECT_EQ(frames_[i].frame, expected[i].address) << i;
      EXPECT_EQ(frames_[i].code, expected[i].code) << i;
      EXPECT_EQ(frames_[i].entry, expected[i].entry) << i;
      if (expected[i].code) {
        EXPECT_EQ(frames_[i].instruction, expected[i].instruction) << i;
      }
    }
  }

  FakeInterpreter fake_;
  std::vector<RawFrame> frames_;
};

TEST_P(FrameWalk, calls_from_python_to_python) {
  auto& thread = fake_.thread().calls("main").calls("work").calls("leaf");
  EXPECT_EQ(walk(thread).end, WalkEnd::base);
  expect_stack(thread);
}

TEST_P(FrameWalk, c_code_that_calls_back_into_python) {
  auto& thread = fake_.thread().calls("main").enters("key").calls("deep").enters("callback");
  EXPECT_EQ(walk(thread).end, WalkEnd::base);
  expect_stack(thread);
}

TEST_P(FrameWalk, a_generator_in_the_chain) {
  auto& thread = fake_.thread().calls("main").resumes("generate").calls("leaf");
  EXPECT_EQ(walk(thread).end, WalkEnd::base);
  expect_stack(thread);
}

TEST_P(FrameWalk, a_thread_that_runs_no_python) {
  auto& thread = fake_.thread().calls("main").returns();
  EXPECT_EQ(walk(thread).end, WalkEnd::empty);
}

TEST_P(FrameWalk, what_has_neither_code_nor_the_mark_of_an_entry_is_no_frame) {
  const RemoteAddress zeros = fake_.memory().allocate(256);
  frames_.resize(10);
  EXPECT_EQ(walk_frames(*GetParam(), zeros, fake_.memory(), std::span(frames_)).end, WalkEnd::broken);
}

TEST_P(FrameWalk, twenty_thousand_frames) {
  auto& thread = fake_.thread();
  for (int i = 0; i < 20'000; ++i) thread.calls("recurse");
  EXPECT_EQ(walk(thread).end, WalkEnd::base);
  expect_stack(thread);
}

TEST_P(FrameWalk, more_frames_than_fit_are_cut_and_say_so) {
  auto& thread = fake_.thread();
  for (int i = 0; i < 50; ++i) thread.calls("recurse");
  EXPECT_EQ(walk(thread, 10).end, WalkEnd::full);
  EXPECT_EQ(frames_.size(), 10U);
}

TEST_P(FrameWalk, a_chain_with_a_cycle_stops) {
  auto& thread = fake_.thread().calls("a").calls("b").calls("c").calls("d");
  const auto stack = thread.stack();
  fake_.memory().put_value(stack[2].address + *GetParam()->frame.previous, stack[0].address.value);
  EXPECT_EQ(walk(thread).end, WalkEnd::broken);
  EXPECT_LE(frames_.size(), 16U);
}

TEST_P(FrameWalk, a_pointer_that_cannot_be_one_stops_the_walk) {
  auto& thread = fake_.thread().calls("a").calls("b");
  fake_.memory().put_value(thread.stack()[0].address + *GetParam()->frame.previous, uint64_t{0x1234567});
  EXPECT_EQ(walk(thread).end, WalkEnd::broken);
}

TEST_P(FrameWalk, an_unreadable_frame_stops_the_walk) {
  auto& thread = fake_.thread().calls("a").calls("b");
  fake_.memory().make_unreadable(thread.stack()[1].address, 16);
  EXPECT_EQ(walk(thread).end, WalkEnd::unreadable);
}

TEST_P(FrameWalk, a_chain_that_ends_without_a_base_is_detached) {
  auto& thread = fake_.thread().calls("main").resumes("generate");
  const auto stack = thread.stack();
  fake_.memory().put_value(stack[0].address + *GetParam()->frame.previous, uint64_t{0});
  // Frame objects (<= 3.10) carry no mark of a base, so there the chain just ends.
  EXPECT_EQ(walk(thread).end, GetParam()->traits.interpreter_frames ? WalkEnd::detached : WalkEnd::base);
}

TEST_P(FrameWalk, a_generator_that_no_python_runs_is_a_base) {
  auto& thread = fake_.thread().resumes("generate").calls("leaf");
  EXPECT_EQ(walk(thread).end, WalkEnd::base);
}

INSTANTIATE_TEST_SUITE_P(EveryRow, FrameWalk, testing::ValuesIn(test::layout_rows()), test::row_name);

}  // namespace
}  // namespace phlox::python
