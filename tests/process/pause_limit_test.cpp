#include "phlox/process/pause_limit.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <new>

namespace phlox::process {
namespace {

TEST(PauseLimit, a_stopped_recorder_is_let_run_after_the_time_that_was_asked_for) {
  constexpr Nanoseconds kLongest = kSecond / 3;
  using Shared = std::atomic<Nanoseconds>;
  void* const page =
      ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(page, MAP_FAILED);
  auto* const stood = new (page) Shared(0);
  const pid_t recorder = ::fork();
  ASSERT_GE(recorder, 0);
  if (recorder == 0) {
    PauseLimit::set_longest(kLongest);
    PauseLimit limit;
    if (limit.watcher() == 0) ::_exit(1);
    const Nanoseconds begun = clock_now();
    limit.begin();
    ::raise(SIGSTOP);
    *stood = clock_now() - begun;
    limit.end();  // stops itself again
    ::_exit(0);
  }
  int status = 0;
  pid_t ended = 0;
  while (*stood == 0 && (ended = ::waitpid(recorder, &status, WNOHANG)) == 0) ::usleep(1000);
  while (ended == 0) {
    ::kill(recorder, SIGCONT);
    ::usleep(1000);
    ended = ::waitpid(recorder, &status, WNOHANG);
  }
  EXPECT_EQ(status, 0);
  EXPECT_GE(*stood, kLongest);
  ::munmap(page, sizeof(Shared));
}

}  // namespace
}  // namespace phlox::process
