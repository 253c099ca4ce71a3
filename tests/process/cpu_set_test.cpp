#include "phlox/process/cpu_set.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <thread>

namespace phlox::process {
namespace {

TEST(CpuSet, of_one_holds_that_one) {
  for (const int cpu : {0, 63, 64, 1023, 1024, kMostCpus - 1}) {
    EXPECT_EQ(CpuSet::of_one(cpu).list(), std::vector<int>{cpu});
    EXPECT_EQ(CpuSet::of_one(cpu).count(), 1);
    EXPECT_TRUE(CpuSet::of_one(cpu).has(cpu));
    EXPECT_FALSE(CpuSet::of_one(cpu).has(cpu == 0 ? 1 : cpu - 1));
  }
}

TEST(CpuSet, a_thread_may_run_where_it_was_moved_to) {
  std::thread([] {
    const auto before = CpuSet::read(0);
    ASSERT_TRUE(before);
    ASSERT_FALSE(before->list().empty());
    const int last = before->list().back();
    ASSERT_EQ(CpuSet::of_one(last).move(0), 0);
    EXPECT_EQ(::sched_getcpu(), last);
    EXPECT_EQ(CpuSet::read(::gettid())->list(), std::vector<int>{last});
    ASSERT_EQ(before->move(0), 0);
    EXPECT_EQ(CpuSet::read(0)->list(), before->list());
  }).join();
}

TEST(CpuSet, says_why_it_cannot) {
  EXPECT_FALSE(CpuSet::read(0x7fffffff));
  EXPECT_EQ(CpuSet::of_one(0).move(0x7fffffff), ESRCH);
  EXPECT_EQ(CpuSet().move(0), EINVAL);
}

}  // namespace
}  // namespace phlox::process
