#include "phlox/sampler/session/cpu_watch.h"

#include <gtest/gtest.h>
#include <unistd.h>

namespace phlox::sampler {
namespace {

TEST(CpuWatch, host_ticks_are_the_first_line) {
  const auto ticks = parse_host_ticks("cpu  10 1 5 100 20 2 3 7 0 0\ncpu0 1 1 1 1 1 1 1 1 0 0\n");
  ASSERT_TRUE(ticks);
  EXPECT_EQ(ticks->busy, 21U);
  EXPECT_EQ(ticks->idle, 120U);
  EXPECT_EQ(ticks->stolen, 7U);
  for (const char* text : {"", "cpu", "cpu  1 2 3", "cpu  1 2 3 4 5 6 7 x", "cpu0 1 2 3 4 5 6 7 8"})
    EXPECT_FALSE(parse_host_ticks(text)) << text;
}

TEST(CpuWatch, counts_from_its_start_on) {
  CpuWatch watch;
  watch.meet(::getpid());
  watch.meet(::getpid());
  const profile::CpuUse use = watch.since_start();
  EXPECT_LE(use.groups.size(), 1U) << "a group is met once";
  EXPECT_LT(use.busy + use.idle, 60 * kSecond * ::sysconf(_SC_NPROCESSORS_ONLN));
}

}  // namespace
}  // namespace phlox::sampler
