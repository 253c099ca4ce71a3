#include "phlox/cli/overdue.h"

#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <optional>
#include <thread>

#include "phlox/base/side_thread.h"

namespace phlox::cli {
namespace {

using namespace std::chrono_literals;

constexpr Nanoseconds kShort = kSecond / 5;

TEST(Overdue, gives_up_what_is_due_and_does_nothing) {
  std::atomic<bool> stop{false};
  std::promise<Overdue::Why> given_up;
  Overdue overdue(stop, [&](Overdue::Why why) { given_up.set_value(why); }, {.patience = kShort});
  overdue.due_after(1);
  EXPECT_EQ(given_up.get_future().wait_for(60s), std::future_status::ready);
}

TEST(Overdue, gives_up_what_was_asked_to_stop_and_does_nothing) {
  std::atomic<bool> stop{true};
  std::promise<Overdue::Why> given_up;
  Overdue overdue(stop, [&](Overdue::Why why) { given_up.set_value(why); }, {.patience = kShort});
  EXPECT_EQ(given_up.get_future().wait_for(60s), std::future_status::ready);
}

TEST(Overdue, leaves_alone_what_is_not_due) {
  std::atomic<bool> stop{false};
  std::atomic<bool> given_up{false};
  Overdue overdue(stop, [&](Overdue::Why) { given_up = true; }, {.patience = kShort});
  overdue.due_after(3600 * kSecond);
  std::this_thread::sleep_for(1s);
  EXPECT_FALSE(given_up);
}

TEST(Overdue, leaves_alone_what_says_that_it_goes_on) {
  std::atomic<bool> stop{true};
  std::atomic<bool> given_up{false};
  Overdue overdue(stop, [&](Overdue::Why) { given_up = true; }, {.patience = kSecond});
  for (int i = 0; i < 500; ++i) {
    overdue.alive();
    std::this_thread::sleep_for(5ms);
  }
  EXPECT_FALSE(given_up);
}

TEST(Overdue, gives_up_what_is_due_and_works_without_end) {
  std::atomic<bool> stop{true};
  std::atomic<bool> over{false};
  std::promise<Overdue::Why> given_up;
  Overdue overdue(stop, [&](Overdue::Why why) { given_up.set_value(why); },
                  {.patience = kShort, .work = kShort});
  std::thread works([&] {
    while (!over) overdue.alive();
  });
  auto why = given_up.get_future();
  EXPECT_EQ(why.wait_for(60s), std::future_status::ready);
  EXPECT_EQ(why.get(), Overdue::Why::too_much_work);
  over = true;
  works.join();
}

// A thread that computes for about a second and a half, while the command is due.
bool gives_up_beside(bool is_side_thread) {
  std::atomic<bool> stop{true}, given_up{false};
  Overdue overdue(stop, [&](Overdue::Why) { given_up = true; }, {.patience = kShort});
  std::atomic<bool> over{false};
  std::thread computes([&] {
    std::optional<SideThread> side;
    if (is_side_thread) side.emplace();
    while (!over) continue;
  });
  for (int i = 0; i < 150 && !given_up; ++i) std::this_thread::sleep_for(10ms);
  const bool result = given_up;
  over = true;
  computes.join();
  return result;
}

TEST(Overdue, side_threads_are_no_sign_of_progress) {
  EXPECT_TRUE(gives_up_beside(true));
}

TEST(Overdue, other_threads_are) {
  EXPECT_FALSE(gives_up_beside(false));
}

TEST(SideThread, the_time_of_ended_ones_stays) {
  const Nanoseconds before = SideThread::cpu_time();
  std::thread([] {
    const SideThread side;
    while (clock_now(CLOCK_THREAD_CPUTIME_ID) < kSecond / 50) continue;
  }).join();
  EXPECT_GE(SideThread::cpu_time() - before, kSecond / 50);
}

}  // namespace
}  // namespace phlox::cli
