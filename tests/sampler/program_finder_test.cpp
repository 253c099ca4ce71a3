#include "phlox/sampler/session/program_finder.h"

#include <gtest/gtest.h>
#include <unistd.h>

namespace phlox::sampler {
namespace {

TEST(ProgramFinder, between_two_searches_is_the_pause_that_was_asked_for) {
  constexpr Nanoseconds kPause = kSecond / 10;
  constexpr useconds_t kPoll = 1000;
  const Nanoseconds begin = clock_now();
  ProgramFinder finder(TreeSearch({}, true, true, [](pid_t) { return false; }), kPause);
  finder.want(1);
  while (finder.state().checks < 4) ::usleep(kPoll);
  EXPECT_GE(clock_now() - begin, 3 * kPause);
}

}  // namespace
}  // namespace phlox::sampler
