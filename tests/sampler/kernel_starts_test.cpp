#include "phlox/sampler/session/kernel_starts.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>

namespace phlox::sampler {
namespace {

constexpr uint32_t kFirst = KERNEL_FIRST_BORN;

kernel_birth birth(uint32_t id, pid_t pid, uint64_t time) {
  kernel_birth one{};
  one.head = {KERNEL_BIRTH, 1};
  one.id = id;
  one.process = static_cast<uint32_t>(pid);
  one.parent = 70;
  one.plain = 1;
  one.time = time;
  return one;
}

// `arguments`: each ended by a zero.
kernel_exec exec(uint32_t before, uint32_t id, pid_t pid, uint64_t time, std::string arguments) {
  kernel_exec one{};
  one.ended.head = {KERNEL_EXEC, before};
  one.ended.thread = static_cast<uint32_t>(pid);
  one.ended.time = time;
  one.ended.ran = 300;
  one.id = id;
  one.inode = 12;
  one.device = 34;
  one.arguments = static_cast<uint32_t>(arguments.size());
  std::memcpy(one.text, arguments.data(), arguments.size());
  return one;
}

kernel_exit exit(uint32_t id, pid_t pid, bool first) {
  kernel_exit one{};
  one.head = {KERNEL_EXIT, id};
  one.thread = static_cast<uint32_t>(pid);
  one.first = first;
  one.time = 9000;
  one.ran = 500;
  return one;
}

TEST(KernelStarts, what_was_started_is_known_by_its_process_from_its_birth_on) {
  KernelStarts starts;
  starts.add(birth(kFirst, 71, 1000));
  ASSERT_NE(starts.find(71), nullptr);
  EXPECT_FALSE(starts.find(71)->called_exec);
  starts.add(exec(kFirst, kFirst + 1, 71, 2000, std::string("/usr/bin/python3\0-c\0pass\0", 25)), false);
  const KernelStart* start = starts.find(71);
  ASSERT_NE(start, nullptr);
  EXPECT_EQ(start->id, kFirst + 1);
  EXPECT_EQ(start->parent, 70);
  EXPECT_EQ(start->begin, 1000);
  EXPECT_EQ(start->executable, (Executable{12, 34}));
  EXPECT_EQ(start->command_line, "/usr/bin/python3 -c pass");
  EXPECT_TRUE(start->looks_like_python());
  EXPECT_FALSE(starts.take(exit(kFirst, 71, true))) << "another program by now";
}

TEST(KernelStarts, what_was_recorded_until_it_called_execve_begins_there) {
  KernelStarts starts;
  starts.add(exec(5, kFirst, 71, 2000, std::string("env\0", 4)), true);
  ASSERT_NE(starts.find(71), nullptr);
  EXPECT_EQ(starts.find(71)->begin, 2000);
  EXPECT_EQ(starts.find(71)->reported, 300U);
  EXPECT_FALSE(starts.find(71)->looks_like_python());
}

TEST(KernelStarts, a_fork_that_was_not_recorded_yet_continues_from_its_birth) {
  KernelStarts starts;
  KernelStart birth;
  birth.begin = 1500;
  birth.parent = 70;
  starts.add(exec(kFirst, kFirst + 1, 71, 2000, std::string("python3\0", 8)), false, birth);
  EXPECT_TRUE(starts.take(exit(kFirst + 1, 71, true)));
  const auto ended = starts.ended();
  ASSERT_EQ(ended.size(), 1U);
  EXPECT_EQ(ended[0].begin, 1500);
  EXPECT_EQ(ended[0].parent, 70);
  EXPECT_EQ(ended[0].used(), 500U);
}

TEST(KernelStarts, has_ended_when_its_first_thread_has) {
  KernelStarts starts;
  starts.add(7, kFirst, 1000);
  starts.add(exec(kFirst, kFirst + 1, 7, 2000, std::string("python3.12\0", 11)), false);
  EXPECT_TRUE(starts.take(exit(kFirst + 1, 8, false)));
  EXPECT_TRUE(starts.ended().empty());
  EXPECT_TRUE(starts.take(exit(kFirst + 1, 7, true)));
  const auto ended = starts.ended();
  ASSERT_EQ(ended.size(), 1U);
  EXPECT_EQ(ended[0].pid, 7);
  EXPECT_EQ(ended[0].used(), 500U);
  EXPECT_TRUE(starts.ended().empty()) << "given once";
  EXPECT_EQ(starts.find(7), nullptr);
}

TEST(KernelStarts, a_child_that_called_no_execve_and_one_that_was_found_are_not_given) {
  KernelStarts starts;
  starts.add(birth(kFirst, 71, 1000));
  EXPECT_TRUE(starts.take(exit(kFirst, 71, true)));
  starts.add(exec(5, kFirst + 1, 72, 2000, std::string("python3\0", 8)), false);
  starts.forget(kFirst + 1);
  EXPECT_FALSE(starts.take(exit(kFirst + 1, 72, true)));
  EXPECT_TRUE(starts.ended().empty());
}

}  // namespace
}  // namespace phlox::sampler
