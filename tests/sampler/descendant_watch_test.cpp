#include "phlox/sampler/session/descendant_watch.h"

#include <gtest/gtest.h>

namespace phlox::sampler {
namespace {

using Seen = DescendantAccount::Seen;

constexpr Nanoseconds kTick = 10'000'000;

Seen python(pid_t pid, pid_t parent, uint64_t waited = 0, uint64_t start = 50) {
  return {pid, {parent, 0, waited, start}, true, {}};
}
Seen other(pid_t pid, pid_t parent, uint64_t used, uint64_t waited = 0, uint64_t start = 200) {
  return {pid, {parent, used, waited, start}, false, "sh"};
}

class DescendantsAccounted : public testing::Test {
 protected:
  DescendantAccount account{100, kTick};
};

TEST_F(DescendantsAccounted, one_that_began_meanwhile_counts_whole_and_an_older_one_from_here_on) {
  account.check(0, {python(10, 1), other(11, 10, 30), other(12, 10, 70, 0, 60)});
  account.check(1, {python(10, 1), other(11, 10, 90), other(12, 10, 75, 0, 60)});
  const auto rows = account.rows();
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].pid, 11);
  EXPECT_EQ(rows[0].cpu, 90 * kTick);
  EXPECT_EQ(rows[1].cpu, 5 * kTick);
  EXPECT_EQ(rows[0].parent, 10);
}

TEST_F(DescendantsAccounted, what_a_compiler_waited_for_is_counted_once) {
  account.check(0, {python(10, 1), other(11, 10, 1), other(12, 11, 40)});
  account.check(1, {python(10, 1), other(11, 10, 2, 55)});  // 12 has ended, and 11 waited for it
  const auto rows = account.rows();
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].cpu, 57 * kTick);
}

TEST_F(DescendantsAccounted, a_shell_is_not_charged_with_the_python_that_it_waits_for) {
  account.check(0, {python(10, 1), other(11, 10, 1), python(12, 11)});
  account.check(1, {python(10, 1), other(11, 10, 2, 90)});
  ASSERT_EQ(account.rows().size(), 1u);
  EXPECT_EQ(account.rows()[0].cpu, 2 * kTick);
}

TEST_F(DescendantsAccounted, one_in_which_a_python_came_up_is_none_of_them) {
  account.check(0, {python(10, 1), other(11, 10, 5)});
  account.check(1, {python(10, 1), python(11, 10, 0, 200)});
  EXPECT_TRUE(account.rows().empty());
}

TEST_F(DescendantsAccounted, children_that_were_not_seen_are_counted_by_their_parents_waits) {
  account.check(0, {python(10, 1, 7)});
  account.check(1, {python(10, 1, 40)});
  ASSERT_EQ(account.rows().size(), 1u);
  EXPECT_EQ(account.rows()[0].pid, 0);
  EXPECT_EQ(account.rows()[0].cpu, 33 * kTick);
  EXPECT_EQ(account.rows()[0].command_line, "(children of process 10 that ended soon)");
}

TEST_F(DescendantsAccounted, what_a_child_used_after_it_was_last_seen_is_not_given_to_others) {
  account.check(0, {python(10, 1, 0), other(11, 10, 3)});
  account.check(1, {python(10, 1, 40)});
  const auto rows = account.rows();
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].cpu, 37 * kTick);
  EXPECT_EQ(rows[0].command_line, "(children of process 10, after the last reading of their CPU time)");
  EXPECT_EQ(rows[1].pid, 11);
  EXPECT_EQ(rows[1].cpu, 3 * kTick);
}

// sh -c 'head | gzip': the shell and what it ran are gone by the next sample.
TEST_F(DescendantsAccounted, what_a_shell_waited_for_is_counted_once_when_both_have_ended) {
  account.check(0, {python(10, 1), other(11, 10, 1), other(12, 11, 30), other(13, 11, 20)});
  account.check(1, {python(10, 1, 60)});
  Nanoseconds all = 0;
  for (const auto& row : account.rows()) all += row.cpu;
  EXPECT_EQ(all, 60 * kTick);
}

TEST_F(DescendantsAccounted, what_a_make_waited_for_through_a_shell_is_counted_once) {
  account.check(0, {python(10, 1), other(11, 10, 1), other(12, 11, 1), other(13, 12, 30)});
  account.check(1, {python(10, 1), other(11, 10, 1, 35)});  // 12 and 13 have ended
  const auto rows = account.rows();
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].pid, 11);
  EXPECT_EQ(rows[0].cpu, 36 * kTick);
}

TEST_F(DescendantsAccounted, a_make_is_not_charged_with_the_python_of_its_shell) {
  account.check(0, {python(10, 1), other(11, 10, 1), other(12, 11, 1), python(13, 12)});
  account.check(1, {python(10, 1), other(11, 10, 2, 90)});
  account.check(2, {python(10, 1, 92)});
  Nanoseconds all = 0;
  for (const auto& row : account.rows()) all += row.cpu;
  EXPECT_EQ(all, 3 * kTick);  // what it and its shell had used
}

TEST_F(DescendantsAccounted, of_one_with_recorded_children_it_is_not_known_what_it_waited_for) {
  account.check(0, {python(10, 1, 0), python(11, 10)});
  account.check(1, {python(10, 1, 40)});
  EXPECT_TRUE(account.rows().empty());
}

TEST(ProcessTicks, are_parsed_behind_a_name_with_brackets) {
  const auto ticks = parse_process_ticks(
      "42 (a) b) S 7 1 1 0 -1 4194304 1 2 3 4 100 20 30 4 20 0 1 0 5555 1000 10 18446744073709551615\n");
  ASSERT_TRUE(ticks);
  EXPECT_EQ(ticks->parent, 7);
  EXPECT_EQ(ticks->used, 120u);
  EXPECT_EQ(ticks->waited, 34u);
  EXPECT_EQ(ticks->start, 5555u);
  EXPECT_FALSE(parse_process_ticks("42 (a) S 7"));
  EXPECT_FALSE(parse_process_ticks(""));
}

}  // namespace
}  // namespace phlox::sampler
