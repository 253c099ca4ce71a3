#include "phlox/sampler/capture/stack_reader.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "phlox/python/layout_table.h"
#include "support/fake_interpreter.h"
#include "support/layout_rows.h"

namespace phlox::sampler {
namespace {

class StacksOf : public testing::TestWithParam<const python::Layout*> {
 protected:
  // The thread as the sampler knows it.
  ThreadState known(const test::FakeThread& thread) {
    ThreadState state;
    state.tstate = thread.state();
    state.interpreter = fake_.state();
    state.python_id = thread.python_id();
    return state;
  }
  StackReader::Reading read(ThreadState& state) {
    snapshot_.capture();
    return reader_.read(Snapshot::kEverybody, state);
  }

  test::FakeInterpreter fake_{*GetParam()};
  RemoteAddress main_ = fake_.make_code({.name = "main"});
  RemoteAddress work_ = fake_.make_code({.name = "work"});
  RemoteAddress deeper_ = fake_.make_code({.name = "deeper"});
  python::Interpreter interpreter_ = fake_.interpreter();
  Ring ring_{size_t{1} << 20};
  Snapshot snapshot_{fake_.memory()};
  NativeCopy native_;
  StackReader reader_{interpreter_, fake_.memory(), ring_, snapshot_, &native_};
};

INSTANTIATE_TEST_SUITE_P(StackReader, StacksOf, testing::ValuesIn(test::layout_rows()), test::row_name);

TEST_P(StacksOf, a_stack_is_read_root_first_with_its_instructions) {
  test::FakeThread& thread = fake_.thread().calls(main_, 3).calls(work_, 12).calls(work_, 14);
  ThreadState state = known(thread);
  const auto reading = read(state);
  ASSERT_TRUE(reading.whole);
  EXPECT_EQ(reading.quality, profile::Quality::ok);
  const auto& found = reader_.locations();
  ASSERT_EQ(found.size(), 3U);
  EXPECT_NE(found[0].code, found[1].code);
  EXPECT_EQ(found[1].code, found[2].code) << "one function";
  size_t at = found.size();
  for (const test::FakeFrame& frame : thread.stack()) {
    if (!frame.code) continue;
    ASSERT_GT(at, 0U);
    EXPECT_EQ(found[--at].instruction, frame.offset) << frame.name;
  }
}

TEST_P(StacksOf, a_frame_that_moved_on_has_the_same_code_elsewhere) {
  test::FakeThread& thread = fake_.thread().calls(main_).calls(work_, 12);
  ThreadState state = known(thread);
  ASSERT_TRUE(read(state).whole);
  const auto before = reader_.locations();
  thread.at_line(20);
  ASSERT_TRUE(read(state).whole);
  EXPECT_EQ(reader_.locations()[0], before[0]);
  EXPECT_EQ(reader_.locations()[1].code, before[1].code);
  EXPECT_NE(reader_.locations()[1].instruction, before[1].instruction);
}

TEST_P(StacksOf, a_state_that_is_another_threads_by_now_is_gone) {
  test::FakeThread& thread = fake_.thread().calls(main_);
  ThreadState state = known(thread);
  ++state.python_id;
  const auto reading = read(state);
  EXPECT_TRUE(reading.state_gone);
  EXPECT_TRUE(reading.whole) << "validly no stack";
  EXPECT_TRUE(reader_.locations().empty());
}

TEST_P(StacksOf, a_thread_without_a_state_has_validly_no_stack) {
  ThreadState state;
  const auto reading = read(state);
  EXPECT_TRUE(reading.whole);
  EXPECT_FALSE(reading.state_gone);
  EXPECT_TRUE(reader_.locations().empty());
}

TEST_P(StacksOf, memory_that_cannot_be_read_is_a_reason_and_no_stack) {
  test::FakeThread& thread = fake_.thread().calls(main_).calls(work_);
  ThreadState state = known(thread);
  fake_.memory().make_unreadable(thread.stack().front().address, 8);
  auto reading = read(state);
  EXPECT_FALSE(reading.whole);
  EXPECT_EQ(reading.rejected, Rejected::unreadable);
  fake_.memory().make_readable();
  fake_.memory().make_unreadable(thread.state(), 8);
  reading = read(state);
  EXPECT_FALSE(reading.whole);
  EXPECT_EQ(reading.rejected, Rejected::unreadable);
  fake_.memory().make_readable();
  EXPECT_TRUE(read(state).whole) << "and the next one can be read again";
}

TEST_P(StacksOf, a_deep_stack_keeps_its_ends_and_says_how_many_frames_are_missing) {
  constexpr size_t kDeep = 3000, kLeaf = 1024, kRoot = 512;
  test::FakeThread& thread = fake_.thread().calls(main_);
  for (size_t i = 1; i < kDeep; ++i) thread.calls(deeper_, static_cast<int32_t>(1 + i % 50));
  ThreadState state = known(thread);
  const auto reading = read(state);
  ASSERT_TRUE(reading.whole);
  EXPECT_EQ(reading.quality, profile::Quality::cut);
  const auto& found = reader_.locations();
  ASSERT_GT(found.size(), kLeaf + 1);
  const CodeLocation marker = found[found.size() - 1 - kLeaf];
  EXPECT_EQ(marker.code, kFramesLeftOut);
  EXPECT_EQ(found.size() - 1 + static_cast<size_t>(marker.instruction), kDeep) << "every frame counts once";
  EXPECT_NEAR(static_cast<double>(found.size() - 1 - kLeaf), kRoot, 2) << "entry frames are not shown";
  EXPECT_NE(found[0].code, found[1].code) << "main is at the root";
  EXPECT_EQ(found.back().instruction, thread.stack().front().offset);
}

TEST_P(StacksOf, a_stack_that_moved_while_it_was_read_is_cut_at_the_root_next_time) {
  constexpr size_t kDeep = 6000, kLeast = 2048, kLeaf = 1024;
  test::FakeThread& thread = fake_.thread().calls(main_);
  for (size_t i = 1; i < kDeep; ++i) thread.calls(deeper_);
  ThreadState state = known(thread);
  reader_.limit(1000 * kSecond);
  ASSERT_GE(read(state).frames.size(), kDeep) << "there is time enough";
  for (int i = 0; i < 5; ++i) reader_.was_moved();
  const auto reading = read(state);
  ASSERT_TRUE(reading.whole);
  EXPECT_EQ(reading.frames.size(), kLeast) << "half of what was read, and half again, but no less";
  EXPECT_EQ(reading.quality, profile::Quality::cut);
  EXPECT_EQ(reader_.locations().front().code, kFramesLeftOut);
  EXPECT_EQ(reader_.locations().size(), 1 + kLeaf);
}

TEST_P(StacksOf, each_evaluation_begins_where_c_called_python) {
  test::FakeThread& thread = fake_.thread().calls(main_).calls("sort").enters("compare").calls("key");
  ThreadState state = known(thread);
  native_.clear();
  ASSERT_TRUE(read(state).whole);
  std::vector<uint32_t> positions;
  for (const EvaluationStart& start : native_.starts()) positions.push_back(start.position);
  // 3.15 has an entry frame at the root of each thread, too.
  positions.erase(std::unique(positions.begin(), positions.end()), positions.end());
  if (fake_.layout().traits.interpreter_frames) {
    EXPECT_EQ(positions, (std::vector<uint32_t>{0, 2}));
  } else {
    EXPECT_EQ(positions, (std::vector<uint32_t>{0, 1, 2, 3})) << "each call is an evaluation of its own";
  }
}

}  // namespace
}  // namespace phlox::sampler
