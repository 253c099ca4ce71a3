#include "phlox/sampler/session/idle_watch.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <memory>
#include <thread>
#include <vector>

namespace phlox::sampler {
namespace {

// Sleeps in read(), and computes a little for each byte that it is sent.
class IdleProcess {
 public:
  IdleProcess() {
    EXPECT_EQ(::pipe(order_), 0);
    EXPECT_EQ(::pipe(done_), 0);
    pid_ = ::fork();
    if (pid_ == 0) {
      for (char byte = 0; ::read(order_[0], &byte, 1) == 1;) {
        const Nanoseconds end = clock_now(CLOCK_PROCESS_CPUTIME_ID) + 1'000'000;
        while (clock_now(CLOCK_PROCESS_CPUTIME_ID) < end) {
        }
        if (::write(done_[1], &byte, 1) != 1) break;
      }
      ::_exit(0);
    }
    computes();
    settle();
  }
  ~IdleProcess() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    for (const int end : {order_[0], order_[1], done_[0], done_[1]}) ::close(end);
  }
  IdleProcess(const IdleProcess&) = delete;
  IdleProcess& operator=(const IdleProcess&) = delete;

  void order() { EXPECT_EQ(::write(order_[1], "x", 1), 1); }
  pid_t pid() const { return pid_; }

 private:
  void computes() {
    char byte = 0;
    order();
    EXPECT_EQ(::read(done_[0], &byte, 1), 1);
  }
  // Until it is back in read().
  void settle() {
    const process::ProcessClock clock(pid_);
    auto used = clock.used();
    for (int same = 0; same < 20;) {
      ::usleep(1000);
      same = clock.used() == used ? same + 1 : 0;
      used = clock.used();
    }
  }

  int order_[2], done_[2];
  pid_t pid_ = 0;
};

TEST(IdleWatch, an_idle_process_is_checked_at_each_moment_and_reported_now_and_then) {
  IdleProcess process;
  const process::ProcessClock clock(process.pid());
  IdleWatch watch(1000);
  const std::atomic<bool> stop{false};
  const Nanoseconds before = clock_now();
  const auto rest = watch.rest(clock, *clock.used(), 1'000'000, stop);
  EXPECT_FALSE(rest.ran);
  EXPECT_GE(rest.still_at, before + IdleWatch::longest_rest(1));
  EXPECT_GT(rest.checks, 10U);
}

TEST(IdleWatch, a_thread_that_is_awake_checks_for_it) {
  IdleProcess process;
  const process::ProcessClock clock(process.pid());
  constexpr Nanoseconds kInterval = 20'000'000;
  IdleWatch watch(1e9 / kInterval);
  std::atomic<bool> stop{false};
  std::atomic<bool> helps{true};
  std::thread helper([&] {
    for (; helps.load(); ::usleep(2000)) watch.help(clock_now());
  });
  const auto rest = watch.rest(clock, *clock.used(), kInterval, stop);
  helps = false;
  helper.join();
  EXPECT_FALSE(rest.ran);
  // Each time that three quarters of an interval have passed.
  EXPECT_GT(rest.checks, 5U);
  EXPECT_LT(rest.checks, 20U);
}

TEST(IdleWatch, it_continues_by_itself_when_no_thread_helps_any_more) {
  IdleProcess process;
  const process::ProcessClock clock(process.pid());
  IdleWatch watch(1000);
  std::atomic<bool> stop{false};
  std::thread sleeper([&] { EXPECT_TRUE(watch.rest(clock, *clock.used(), 1'000'000, stop).ran); });
  for (int i = 0; i < 20; ++i, ::usleep(1000)) watch.help(clock_now());
  process.order();
  sleeper.join();
}

TEST(IdleWatch, of_several_each_learns_of_its_own) {
  constexpr size_t kProcesses = 5;
  std::vector<std::unique_ptr<IdleProcess>> processes;
  for (size_t i = 0; i < kProcesses; ++i) processes.push_back(std::make_unique<IdleProcess>());
  IdleWatch watch(1000);
  const std::atomic<bool> stop{false};
  std::vector<IdleWatch::Rest> rests(kProcesses);
  std::vector<std::thread> threads;
  for (size_t i = 0; i < kProcesses; ++i) {
    threads.emplace_back([&, i] {
      const process::ProcessClock clock(processes[i]->pid());
      const Nanoseconds used = *clock.used();
      if (i == 1 || i == 3) processes[i]->order();
      rests[i] = watch.rest(clock, used, 1'000'000, stop);
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (size_t i = 0; i < kProcesses; ++i) EXPECT_EQ(rests[i].ran, i == 1 || i == 3) << i;
}

TEST(IdleWatch, to_say_that_they_rest_costs_many_no_more_than_some) {
  EXPECT_EQ(IdleWatch::longest_rest(1), IdleWatch::longest_rest(40));
  EXPECT_EQ(IdleWatch::longest_rest(160), 160 * kSecond / 200);
  EXPECT_EQ(IdleWatch::longest_rest(5000), kSecond);
}

TEST(IdleWatch, slower_programs_are_asked_less_often) {
  IdleProcess process;
  const process::ProcessClock clock(process.pid());
  IdleWatch watch(1000);
  const std::atomic<bool> stop{false};
  const auto rest = watch.rest(clock, *clock.used(), 100'000'000, stop);
  EXPECT_FALSE(rest.ran);
  EXPECT_LE(rest.checks, 12U);
}

TEST(IdleWatch, a_process_that_ran_is_woken_soon) {
  IdleProcess process;
  const process::ProcessClock clock(process.pid());
  const auto used = clock.used();
  IdleWatch watch(1000);
  const std::atomic<bool> stop{false};
  process.order();
  const auto rest = watch.rest(clock, *used, 1'000'000, stop);
  EXPECT_TRUE(rest.ran);
  EXPECT_LT(rest.still_at, clock_now());
}

TEST(IdleWatch, a_process_that_ended_has_run) {
  auto process = std::make_unique<IdleProcess>();
  const process::ProcessClock clock(process->pid());
  const auto used = clock.used();
  process.reset();
  EXPECT_FALSE(clock.used());
  IdleWatch watch(1000);
  const std::atomic<bool> stop{false};
  EXPECT_TRUE(watch.rest(clock, *used, 1'000'000, stop).ran);
}

TEST(IdleWatch, one_that_is_to_stop_does_not_wait_for_the_schedule) {
  IdleProcess process;
  const process::ProcessClock clock(process.pid());
  IdleWatch watch(0.01);
  std::atomic<bool> stop{false};
  std::thread stopper([&] {
    stop = true;
    watch.wake();
  });
  EXPECT_FALSE(watch.rest(clock, *clock.used(), 1'000'000, stop).ran);
  stopper.join();
}

}  // namespace
}  // namespace phlox::sampler
