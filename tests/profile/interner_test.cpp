#include "phlox/profile/interner.h"

#include <gtest/gtest.h>

#include <vector>

#include "phlox/profile/profile.h"

namespace phlox::profile {
namespace {

Frame python_frame(std::string name, int32_t line) {
  Frame frame;
  frame.function = name;
  frame.qualified_name = name;
  frame.file = "app.py";
  frame.first_line = 1;
  frame.line = line;
  return frame;
}

TEST(Interner, equal_frames_are_put_once) {
  Profile profile;
  Interner interner(profile);
  const FrameId a = interner.frame(python_frame("a", 2));
  EXPECT_EQ(a, interner.frame(python_frame("a", 2)));
  EXPECT_NE(a, interner.frame(python_frame("a", 3)));
  ASSERT_EQ(profile.frames().size(), 2u);
  EXPECT_EQ(profile.frame(a), python_frame("a", 2));
}

TEST(Interner, frames_of_two_owners_are_two) {
  Profile profile;
  Interner interner(profile);
  const Frame frame = python_frame("", 0);
  const FrameId one = interner.frame(frame, 1);
  EXPECT_EQ(one, interner.frame(frame, 1));
  EXPECT_NE(one, interner.frame(frame, 2));
  EXPECT_NE(one, interner.frame(frame));
}

TEST(Interner, frames_that_differ_in_one_field_are_two) {
  Profile profile;
  Interner interner(profile);
  Frame base = python_frame("ab", 2);
  base.qualified_name = "c";
  std::vector<Frame> variants(10, base);
  variants[1].kind = FrameKind::marker;
  variants[2].function = "a";
  variants[2].qualified_name = "bc";
  variants[3].file = "g";
  variants[4].first_line = 2;
  variants[4].line = 1;
  variants[5].module = ModuleId(1);
  variants[6].address = 1;
  variants[7].inlined_in = FrameId(1);
  variants[8].found_by = "cfi";
  variants[9].role = FrameRole::trampoline;
  for (const Frame& frame : variants) interner.frame(frame);
  EXPECT_EQ(interner.frames(), variants.size());
  EXPECT_EQ(profile.frames(), variants);
}

TEST(Interner, a_known_key_makes_no_frame_again) {
  Profile profile;
  Interner interner(profile);
  int made = 0;
  auto make = [&] {
    ++made;
    return python_frame("f", 7);
  };
  const FrameId first = interner.frame(uint64_t{1} << 32 | 7, make);
  EXPECT_EQ(first, interner.frame(uint64_t{1} << 32 | 7, make));
  EXPECT_EQ(made, 1);
  // The same function made again has another code id but the same content.
  EXPECT_EQ(first, interner.frame(uint64_t{2} << 32 | 7, make));
  EXPECT_EQ(profile.frames().size(), 1u);
}

TEST(Interner, stacks_share_what_they_have_in_common) {
  Profile profile;
  Interner interner(profile);
  const FrameId main = interner.frame(python_frame("main", 1)), a = interner.frame(python_frame("a", 2)),
                b = interner.frame(python_frame("b", 3));
  const StackId main_a = interner.stack(std::vector{main, a});
  const StackId main_b = interner.stack(std::vector{main, b});
  EXPECT_EQ(interner.stacks(), 3u);
  EXPECT_NE(main_a, main_b);
  EXPECT_EQ(profile.stack(main_a).parent, profile.stack(main_b).parent);
  EXPECT_EQ(interner.stack(std::vector{main, a}), main_a);
  EXPECT_EQ(interner.stack(std::vector{b}, main_a), interner.stack(std::vector{main, a, b}));
  EXPECT_FALSE(interner.stack(std::vector<FrameId>{}));
}

TEST(Interner, parents_are_put_before_children) {
  struct Order : Profile {
    void receive(const AnyRow& row) override {
      if (const auto* stack = std::get_if<Numbered<StackId>>(&row)) {
        EXPECT_LT(stack->value.parent.value, stack->id.value);
        EXPECT_LE(stack->value.frame.value, frames().size());
      }
      Profile::receive(row);
    }
  } profile;
  Interner interner(profile);
  for (uint32_t i = 0; i < 20'000; ++i) {
    std::vector<FrameId> frames;
    for (uint32_t k = 0; k < 4; ++k)
      frames.push_back(interner.frame(i >> k, [&] { return python_frame("f", int32_t(i >> k)); }));
    interner.stack(frames);
  }
  EXPECT_EQ(profile.stacks().size(), interner.stacks());
}

TEST(Interner, beyond_its_limits_a_marker_replaces_a_frame_and_is_counted) {
  Profile profile;
  Interner interner(profile, {.frames = 3, .name_bytes = 1000, .stacks = 100});
  const FrameId a = interner.frame(python_frame("a", 1));
  const FrameId b = interner.frame(python_frame("b", 1));
  const FrameId c = interner.frame(python_frame("c", 1));
  EXPECT_EQ(interner.left_out(), 0u);
  const FrameId d = interner.frame(python_frame("d", 1));
  EXPECT_EQ(interner.frame(python_frame("e", 1)), d);
  EXPECT_EQ(interner.left_out(), 2u);
  EXPECT_EQ(profile.frame(d).kind, FrameKind::marker);
  EXPECT_EQ(profile.frames().size(), 4u);
  EXPECT_EQ(interner.frame(python_frame("a", 1)), a);
  EXPECT_EQ(interner.frame(python_frame("b", 1)), b);
  EXPECT_EQ(interner.frame(python_frame("c", 1)), c);
}

TEST(Interner, each_wait_target_is_emitted_once) {
  Profile profile;
  Interner interner(profile, {.wait_targets = 2});
  const WaitTarget one{WaitTargetKind::socket, "10.0.0.5:5432", ""},
      other{WaitTargetKind::pipe, "10.0.0.5:5432", ""};
  const WaitTargetId first = interner.wait_target(one);
  EXPECT_NE(interner.wait_target(other), first);
  EXPECT_EQ(interner.wait_target(one), first);
  EXPECT_EQ(profile.wait_targets(), (std::vector<WaitTarget>{one, other}));
  EXPECT_FALSE(interner.wait_target({WaitTargetKind::file, "/tmp/x", ""})) << "beyond the limit";
}

TEST(Interner, names_have_a_limit_of_bytes) {
  Profile profile;
  Interner interner(profile, {.frames = 100, .name_bytes = 10'000, .stacks = 100});
  const FrameId first = interner.frame(python_frame(std::string(3000, 'n'), 1));
  EXPECT_EQ(profile.frame(first).kind, FrameKind::python);
  EXPECT_EQ(profile.frame(interner.frame(python_frame(std::string(3000, 'm'), 1))).kind, FrameKind::marker);
  EXPECT_EQ(profile.frame(interner.frame(python_frame("short", 1))).kind, FrameKind::python);
}

TEST(Interner, beyond_its_limit_a_stack_ends_where_it_is_known) {
  Profile profile;
  Interner interner(profile, {.frames = 100, .name_bytes = 10'000, .stacks = 2});
  const FrameId a = interner.frame(python_frame("a", 1)), b = interner.frame(python_frame("b", 1)),
                c = interner.frame(python_frame("c", 1));
  const StackId ab = interner.stack(std::vector{a, b});
  EXPECT_EQ(interner.stack(std::vector{a, b, c}), ab);
  EXPECT_EQ(interner.left_out(), 1u);
  EXPECT_EQ(interner.stack(std::vector{a, b}), ab);
  EXPECT_TRUE(interner.stack(std::vector{c})) << "a stack is never taken for none";
}

}  // namespace
}  // namespace phlox::profile
