#include "phlox/sampler/session/known_processes.h"

#include <gtest/gtest.h>

namespace phlox::sampler {
namespace {

constexpr pid_t kParent = 10, kChild = 11;
const Image kPython{"/usr/bin/python3", 0x7ffc1000};

TEST(KnownProcesses, a_program_of_a_known_parent_has_its_row) {
  KnownProcesses known;
  EXPECT_FALSE(known.meet(kParent, 0, kPython).parent);
  const auto child = known.meet(kChild, kParent, {"/usr/bin/python3", 0x7ffd2000});
  EXPECT_EQ(child.row, profile::ProcessId(2));
  EXPECT_EQ(child.parent, profile::ProcessId(1));
  EXPECT_FALSE(child.is_fork) << "an execve gave it a stack of its own";
  EXPECT_TRUE(known.contains(kChild));
  EXPECT_FALSE(known.contains(kChild + 1));
}

TEST(KnownProcesses, a_fork_has_the_stack_of_its_parent) {
  KnownProcesses known;
  known.meet(kParent, 0, kPython);
  EXPECT_TRUE(known.meet(kChild, kParent, kPython).is_fork);
}

TEST(KnownProcesses, whether_it_is_a_fork_is_not_known_without_its_stack) {
  KnownProcesses known;
  const Image no_stack{"/usr/bin/python3", 0};
  known.meet(kParent, 0, no_stack);
  EXPECT_FALSE(known.meet(kChild, kParent, no_stack).is_fork);
}

TEST(KnownProcesses, the_next_program_of_a_process_is_the_parent_from_then_on) {
  KnownProcesses known;
  EXPECT_TRUE(known.meet(kParent, 0, kPython).is_first);
  EXPECT_FALSE(known.meet(kParent, 0, {"/usr/bin/python3", 0x7ffe3000}).is_first);
  const auto child = known.meet(kChild, kParent, kPython);
  EXPECT_EQ(child.parent, profile::ProcessId(2));
  EXPECT_FALSE(child.is_fork) << "of the program before";
}

TEST(KnownProcesses, a_process_that_was_recorded_from_its_birth_may_be_found_for_a_second_after_its_end) {
  KnownProcesses known;
  EXPECT_FALSE(known.may_be_found_late(kChild, 0));
  known.note_birth(kChild);
  EXPECT_TRUE(known.may_be_found_late(kChild, 100 * kSecond)) << "it runs";
  known.note_end(kChild, 100 * kSecond);
  EXPECT_TRUE(known.may_be_found_late(kChild, 101 * kSecond - 1));
  EXPECT_FALSE(known.may_be_found_late(kChild, 101 * kSecond)) << "another process may have its id";
}

TEST(KnownProcesses, what_a_search_finds_after_an_execve_is_another_program) {
  KnownProcesses known;
  known.note_birth(kChild);
  known.note_exec(kChild);
  EXPECT_FALSE(known.may_be_found_late(kChild, 1));
  known.note_end(kParent, 1);
  EXPECT_FALSE(known.may_be_found_late(kParent, 1)) << "its birth was not reported";
}

TEST(KnownProcesses, the_last_that_became_another_program_is_named_until_a_python_is_found_in_it) {
  KnownProcesses known;
  known.meet(kParent, 0, kPython);
  EXPECT_EQ(known.became_another(), 0);
  known.note_exec(kParent);
  known.meet(kChild, kParent, kPython);
  EXPECT_EQ(known.became_another(), kParent);
  known.meet(kParent, 0, kPython);
  EXPECT_EQ(known.became_another(), 0);
}

}  // namespace
}  // namespace phlox::sampler
