#include "phlox/report/dump.h"

#include <gtest/gtest.h>

#include "support/profile_of.h"

namespace phlox::report {
namespace {

// A thread slept; when the sample ended, it had run meanwhile, where no sample saw it.
TEST(DumpOfThreads, shows_the_last_sample_and_not_the_time_after_it) {
  profile::Profile instant;
  test::ProfileMaker maker(instant);
  const auto thread = maker.thread("MainThread");
  maker.put(maker.blocked(thread, "main:1;nap:3", 10'000'000, 35));
  profile::Sample between = maker.sample(thread, "(ran between two samples)", 1'000'000);
  between.samples = 0;
  maker.put(between);
  const std::string json = dump_json(instant, {});
  EXPECT_NE(json.find("nap"), std::string::npos) << json;
  EXPECT_EQ(json.find("between"), std::string::npos) << json;
}

}  // namespace
}  // namespace phlox::report
