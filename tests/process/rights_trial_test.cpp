#include "phlox/process/rights_trial.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

#include <cerrno>

#include "phlox/process/process_state.h"

namespace phlox::process {
namespace {

TEST(RightsTrial, memory_of_ourselves_is_readable) {
  const MemoryTrial trial = try_memory(::getpid());
  EXPECT_TRUE(trial.readable());
  EXPECT_EQ(trial.call, 0);
}

TEST(RightsTrial, memory_of_no_process_cannot_be_read) {
  const MemoryTrial trial = try_memory(1 << 22);
  EXPECT_FALSE(trial.readable());
  EXPECT_EQ(trial.maps, ENOENT);
}

TEST(RightsTrial, a_stranger_is_no_child_of_ours_and_ends_with_the_object) {
  pid_t pid = 0;
  {
    const Stranger stranger;
    pid = stranger.pid();
    ASSERT_GT(pid, 0);
    const auto state = read_process_state(pid);
    ASSERT_TRUE(state);
    EXPECT_NE(state->status.parent, ::getpid());
    EXPECT_EQ(state->status.uid.real, ::getuid());
  }
  for (int i = 0; i < 1000; ++i) {
    const auto state = read_process_state(pid);
    if (!state || state->zombie()) return;
    ::usleep(10000);
  }
  FAIL() << "it is still there";
}

TEST(RightsTrial, trying_cpus_moves_only_its_own_thread) {
  cpu_set_t before, after;
  ASSERT_EQ(::sched_getaffinity(0, sizeof before, &before), 0);
  const CpuTrial trial = try_cpus(::getpid());
  ASSERT_EQ(::sched_getaffinity(0, sizeof after, &after), 0);
  EXPECT_TRUE(CPU_EQUAL(&before, &after));
  EXPECT_EQ(trial.wanted.size(), static_cast<size_t>(CPU_COUNT(&before)));
}

TEST(RightsTrial, our_own_files_open) {
  const auto maps = read_maps(::getpid());
  ASSERT_TRUE(maps);
  const FilesTrial trial = try_files(::getpid(), *maps);
  EXPECT_GT(trial.opened, 1u);
  EXPECT_TRUE(trial.not_opened.empty());
}

}  // namespace
}  // namespace phlox::process
