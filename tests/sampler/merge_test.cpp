#include "phlox/sampler/assemble/merge.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace phlox::sampler {
namespace {

// Native frames of 0x100 bytes each from 0x10000 on; a group's anchor is given as the number of its native
// frame.
class Stack {
 public:
  explicit Stack(size_t native) {
    for (size_t i = 0; i < native; ++i) {
      unwind::NativeFrame frame;
      frame.sp = RemoteAddress(0x10000 + i * 0x100);
      frame.cfa = frame.sp + 0x100;
      native_.push_back(frame);
    }
    is_loop_.assign(native, 0);
  }
  Stack& loops(std::initializer_list<size_t> frames) {
    for (const size_t i : frames) is_loop_[i] = 1;
    return *this;
  }
  static constexpr int kNone = -1;
  Stack& python(uint32_t count, int host) {
    const uint32_t first = groups_.empty() ? 0 : groups_.back().first + groups_.back().count;
    groups_.push_back({first, count,
                       host == kNone ? RemoteAddress()
                                     : RemoteAddress(0x10000 + static_cast<uint64_t>(host) * 0x100 + 0x40)});
    return *this;
  }
  // "n0 p0 p1 n1": innermost first.
  std::string merged(NativeEnd end = NativeEnd::start) {
    merge(groups_, native_, is_loop_, end, result);
    std::string text;
    for (const auto& frame : result.frames) {
      text += (text.empty() ? "" : " ") + std::string(frame.python ? "p" : "n") + std::to_string(frame.index);
    }
    return text;
  }
  // How many are the greenlet's own, where these frames are of its library.
  size_t of_greenlet(std::set<size_t> frames) const {
    return frames_of_greenlet(groups_, native_, [&](const auto& frame) {
      return frames.contains((frame.sp.value - 0x10000) / 0x100);
    });
  }
  Merged result;

 private:
  std::vector<PythonGroup> groups_;
  std::vector<unwind::NativeFrame> native_;
  std::vector<uint8_t> is_loop_;
};

TEST(Merge, python_frames_are_on_the_native_frame_that_holds_their_anchor) {
  Stack s(6);
  EXPECT_EQ(s.python(2, 1).python(1, 4).merged(), "n0 p0 p1 n1 n2 n3 p2 n4 n5");
  EXPECT_EQ(s.result.end, MergeEnd::whole);
  EXPECT_EQ(s.result.unplaced_groups, 0u);
}

TEST(Merge, six_levels_of_re_entry) {
  Stack s(13);
  for (const int host : {1, 3, 5, 7, 9, 11}) s.python(1, host);
  EXPECT_EQ(s.merged(), "n0 p0 n1 n2 p1 n3 n4 p2 n5 n6 p3 n7 n8 p4 n9 n10 p5 n11 n12");
  EXPECT_EQ(s.result.end, MergeEnd::whole);
}

TEST(Merge, loop_frame_in_its_prologue_has_no_python_frames_yet) {
  Stack s(6);
  s.loops({0, 3}).python(2, 3);
  EXPECT_EQ(s.merged(), "n0 n1 n2 p0 p1 n3 n4 n5");
  EXPECT_EQ(s.result.end, MergeEnd::whole);
  EXPECT_TRUE(s.result.prologue);
}

TEST(Merge, left_over_top_frames_go_to_the_loop_frame_inside_all_anchored_ones) {
  Stack s(6);
  s.loops({1, 4}).python(1, Stack::kNone).python(2, 4);
  EXPECT_EQ(s.merged(), "n0 p0 n1 n2 n3 p1 p2 n4 n5");
  EXPECT_EQ(s.result.end, MergeEnd::whole);
  EXPECT_FALSE(s.result.prologue);
}

TEST(Merge, group_without_a_place_stays_in_the_order_and_is_said) {
  Stack s(6);
  s.python(1, Stack::kNone).python(2, 4);
  EXPECT_EQ(s.merged(), "n0 n1 n2 n3 p0 p1 p2 n4 n5");
  EXPECT_EQ(s.result.end, MergeEnd::partial);
  EXPECT_EQ(s.result.unplaced_groups, 1u);
}

TEST(Merge, stale_anchor_between_two_good_ones_keeps_every_frame) {
  Stack s(8);
  s.python(1, 1).python(1, 0).python(1, 6);  // the middle one points below the innermost group's frame
  EXPECT_EQ(s.merged(), "n0 p0 n1 n2 n3 n4 n5 p1 p2 n6 n7");
  EXPECT_EQ(s.result.end, MergeEnd::partial);
}

TEST(Merge, before_anchors_one_python_frame_for_each_loop_frame) {
  Stack s(7);
  s.loops({1, 2, 5}).python(1, Stack::kNone).python(1, Stack::kNone).python(1, Stack::kNone);
  EXPECT_EQ(s.merged(), "n0 p0 n1 p1 n2 n3 n4 p2 n5 n6");
  EXPECT_EQ(s.result.end, MergeEnd::whole);
}

TEST(Merge, before_anchors_the_innermost_loop_frame_may_be_in_its_prologue) {
  Stack s(7);
  s.loops({1, 2, 5}).python(1, Stack::kNone).python(1, Stack::kNone);
  EXPECT_EQ(s.merged(), "n0 n1 p0 n2 n3 n4 p1 n5 n6");
  EXPECT_EQ(s.result.end, MergeEnd::whole);
  EXPECT_TRUE(s.result.prologue);
}

TEST(Merge, before_anchors_a_greenlet_is_on_loop_frames_of_others) {
  Stack s(10);
  s.loops({3, 5, 6, 8}).python(1, Stack::kNone).python(1, Stack::kNone);
  EXPECT_EQ(s.merged(), "n0 n1 n2 p0 n3 n4 p1 n5 n6 n7 n8 n9");
  EXPECT_EQ(s.result.end, MergeEnd::whole);
  EXPECT_FALSE(s.result.prologue);
}

TEST(Merge, before_anchors_a_greenlet_whose_innermost_loop_frame_may_be_in_its_prologue_is_said) {
  Stack s(10);
  s.loops({0, 4, 6, 8}).python(1, Stack::kNone).python(1, Stack::kNone);
  EXPECT_EQ(s.merged(), "p0 n0 n1 n2 n3 p1 n4 n5 n6 n7 n8 n9");
  EXPECT_EQ(s.result.end, MergeEnd::partial);
}

TEST(Merge, before_anchors_a_native_stack_that_was_cut_is_counted_from_the_inside) {
  Stack s(6);
  s.loops({2, 4}).python(1, Stack::kNone).python(1, Stack::kNone).python(1, Stack::kNone);
  EXPECT_EQ(s.merged(NativeEnd::cut), "n0 n1 p0 n2 n3 p1 n4 n5 p2");
  EXPECT_EQ(s.result.end, MergeEnd::native_cut);
  EXPECT_EQ(s.result.unplaced_groups, 1u);
}

TEST(Merge, native_stack_that_was_cut_is_followed_by_the_rest_of_python) {
  Stack s(3);
  s.python(1, 1).python(2, 9).python(1, 12);
  EXPECT_EQ(s.merged(), "n0 p0 n1 n2 p1 p2 p3");
  EXPECT_EQ(s.result.end, MergeEnd::native_cut);
  EXPECT_EQ(s.result.unplaced_groups, 2u);
}

TEST(Merge, two_anchors_in_one_frame_are_not_called_whole) {
  Stack s(4);
  s.python(1, 2).python(1, 2);
  EXPECT_EQ(s.merged(), "n0 n1 p0 n2 n3 p1");
  EXPECT_EQ(s.result.end, MergeEnd::partial);
}

TEST(Merge, one_side_alone) {
  Stack native(2);
  EXPECT_EQ(native.merged(), "n0 n1");
  EXPECT_EQ(native.result.end, MergeEnd::native_only);
  Stack python(0);
  EXPECT_EQ(python.python(2, 1).merged(), "p0 p1");
  EXPECT_EQ(python.result.end, MergeEnd::python_only);
}

TEST(Merge, group_of_no_frames_of_its_own_is_placed_like_any_other) {
  Stack s(3);
  EXPECT_EQ(s.python(0, 1).merged(), "n0 n1 n2");
  EXPECT_EQ(s.result.end, MergeEnd::whole);
}

// Whatever is there now looks like callers of it.
TEST(Merge, a_greenlet_ends_with_what_calls_it) {
  Stack s(12);
  s.python(2, 1).python(1, 4);
  EXPECT_EQ(s.of_greenlet({6, 7}), 7u);
  // Those of another greenlet's start, left further out; the call of one that switches, further in.
  EXPECT_EQ(s.of_greenlet({6, 7, 10}), 7u);
  EXPECT_EQ(s.of_greenlet({0, 2, 6, 7}), 7u);
  EXPECT_EQ(s.of_greenlet({0, 2}), 0u);
  EXPECT_EQ(s.of_greenlet({11}), 12u);
}

TEST(Merge, where_a_greenlet_begins_is_not_known_without_an_anchor) {
  Stack none(6), without(6), outside(6);
  EXPECT_EQ(none.of_greenlet({3}), 0u);
  EXPECT_EQ(without.python(1, 1).python(1, Stack::kNone).of_greenlet({3}), 0u);
  EXPECT_EQ(outside.python(1, 7).of_greenlet({3}), 0u);
}

// Its outermost evaluation is the library's own record.
TEST(Merge, a_greenlet_of_3_10_begins_at_its_outermost_anchor) {
  Stack s(9);
  EXPECT_EQ(s.python(1, 3).python(1, 5).of_greenlet({5, 6}), 6u);
}

}  // namespace
}  // namespace phlox::sampler
