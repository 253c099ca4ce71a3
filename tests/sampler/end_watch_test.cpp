#include "phlox/sampler/session/end_watch.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <memory>
#include <vector>

#include "phlox/sampler/session/program.h"

namespace phlox::sampler {
namespace {

pid_t compute_for(Nanoseconds time) {
  const pid_t pid = ::fork();
  if (pid != 0) return pid;
  while (clock_now(CLOCK_PROCESS_CPUTIME_ID) < time) {
  }
  ::_exit(0);
}

Nanoseconds used_by_the_kernel(pid_t pid) {
  rusage usage{};
  EXPECT_EQ(::wait4(pid, nullptr, 0, &usage), pid);
  const auto time = [](const timeval& t) { return t.tv_sec * kSecond + t.tv_usec * 1000; };
  return time(usage.ru_utime) + time(usage.ru_stime);
}

TEST(EndWatch, what_it_had_used_is_known_until_and_after_it_is_fetched) {
  EndWatch ends;
  const pid_t pid = compute_for(20'000'000);
  const auto pidfd = watch(pid);
  ASSERT_TRUE(pidfd);
  const auto end = ends.watch(pid, *pidfd);
  pollfd wanted{pidfd->get(), POLLIN, 0};
  ASSERT_EQ(::poll(&wanted, 1, 10'000), 1);
  const auto before = end->used();
  const Nanoseconds kernel = used_by_the_kernel(pid);
  ASSERT_TRUE(before);
  EXPECT_NEAR(static_cast<double>(*before), static_cast<double>(kernel), 1e6);
  EXPECT_EQ(end->used(), before);
  ends.forget(*pidfd);
}

TEST(EndWatch, several_end_at_once_and_one_is_forgotten_before) {
  EndWatch ends;
  std::vector<pid_t> pids;
  std::vector<Descriptor> pidfds;
  std::vector<std::shared_ptr<EndWatch::End>> watched;
  for (int i = 0; i < 8; ++i) {
    pids.push_back(compute_for(5'000'000));
    auto pidfd = watch(pids.back());
    ASSERT_TRUE(pidfd);
    watched.push_back(ends.watch(pids.back(), *pidfd));
    pidfds.push_back(*std::move(pidfd));
  }
  ends.forget(pidfds.front());
  for (size_t i = 0; i < pids.size(); ++i) {
    pollfd wanted{pidfds[i].get(), POLLIN, 0};
    ASSERT_EQ(::poll(&wanted, 1, 10'000), 1);
    EXPECT_GE(watched[i]->used().value_or(0), 4'900'000);
    used_by_the_kernel(pids[i]);
  }
}

}  // namespace
}  // namespace phlox::sampler
