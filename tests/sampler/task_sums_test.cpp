#include "phlox/sampler/session/task_sums.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <vector>

#include "phlox/profile/profile.h"
#include "phlox/profile/task_time.h"
#include "phlox/sampler/session/task_census.h"

namespace phlox::sampler {
namespace {

constexpr Nanoseconds kMs = 1'000'000;

python::AsyncTask task(uint64_t address, int32_t line, python::AwaitedKind kind,
                       python::TaskState state = python::TaskState::waiting) {
  python::AsyncTask out;
  out.address = RemoteAddress(address);
  out.state = state;
  out.frames = {{0, line}, {1, 50}};
  out.kind = kind;
  return out;
}

python::AsyncTasks census(std::vector<python::AsyncTask> tasks) {
  python::AsyncTasks out;
  out.functions = {{"handle", "handle", "/app/web.py", 10},
                   {"acquire", "Lock.acquire", "/lib/asyncio/locks.py", 40}};
  out.loops = {{RemoteAddress(0x1000), "uvloop.Loop", 77}};
  out.tasks = std::move(tasks);
  return out;
}

class TaskSumsOf : public testing::Test {
 protected:
  profile::Profile frames_;
  profile::Interner interner_{frames_};
  profile::TaskRows seen_;
  TaskRowIds ids_;
  TaskSums sums_{profile::ProcessId(1), seen_, interner_, ids_};
  TaskSums::ThreadOf thread_of_ = [](uint64_t id) { return profile::ThreadId(id == 77 ? 3 : 0); };
};

using python::AwaitedKind;

TEST_F(TaskSumsOf, equal_tasks_are_one_row_and_censuses_share_the_time_between_them) {
  sums_.add(census({task(1, 12, AwaitedKind::lock), task(2, 12, AwaitedKind::lock),
                    task(3, 15, AwaitedKind::lock)}),
            100 * kMs, thread_of_);
  sums_.add(census({task(1, 12, AwaitedKind::lock)}), 50 * kMs, thread_of_);
  sums_.put();
  ASSERT_EQ(seen_.times.size(), 2u);
  const profile::TaskTime& first = seen_.times[0];
  EXPECT_EQ(first.time, (200 + 50 + 25) * kMs);
  EXPECT_EQ(first.seen, 3u);
  EXPECT_EQ(first.kind, "lock");
  EXPECT_EQ(seen_.times[1].time, (100 + 25) * kMs);
  ASSERT_EQ(seen_.loops.size(), 1u);
  EXPECT_EQ(seen_.loops[0], (profile::EventLoop{profile::ProcessId(1), profile::ThreadId(3), "uvloop.Loop"}));
}

// As at the end of asyncio.run(), which sets the loop's _thread_id to None before it cancels the tasks.
TEST_F(TaskSumsOf, a_loop_that_no_longer_says_its_thread_is_still_the_same) {
  auto running = census({task(1, 12, AwaitedKind::lock)});
  auto ended = running, another = running;
  ended.loops[0].python_id = 0;
  another.loops[0] = {RemoteAddress(0x2000), "uvloop.Loop", 0};
  for (const auto* one : {&running, &ended, &ended}) sums_.add(*one, 100 * kMs, thread_of_);
  EXPECT_EQ(seen_.loops.size(), 1u);
  sums_.add(another, 100 * kMs, thread_of_);
  EXPECT_EQ(seen_.loops.size(), 2u) << "nothing shows which thread runs it";
  sums_.add(ended, 100 * kMs, thread_of_);
  EXPECT_EQ(seen_.loops.size(), 2u);
  EXPECT_FALSE(seen_.loops[1].thread) << "it was not in the census before, so it may be another one";
}

TEST_F(TaskSumsOf, a_running_task_has_the_functions_that_it_has_called_down_to_the_program_s_last) {
  auto one = task(1, 12, AwaitedKind::none, python::TaskState::running);
  one.frames = {{0, 12}, {1, 50}, {0, 30}, {1, 60}};
  one.called = 3;
  auto tasks = census({one});
  tasks.functions[1].file = "/usr/lib/python3.12/json/decoder.py";
  sums_.add(tasks, 100 * kMs, thread_of_);
  ids_.called = TaskSums::kMostCalled;
  sums_.add(tasks, 100 * kMs, thread_of_);
  sums_.put();
  ASSERT_EQ(seen_.times.size(), 2u);
  std::vector<int32_t> lines;
  for (profile::TaskStackId at = seen_.times[0].stack; at; at = seen_.stacks[at.value - 1].parent)
    lines.push_back(frames_.frame(seen_.stacks[at.value - 1].frame).line);
  EXPECT_EQ(lines, (std::vector<int32_t>{30, 50, 12})) << "not the library that it has called last";
  EXPECT_FALSE(seen_.stacks[seen_.times[1].stack.value - 1].parent) << "too many: its coroutines alone";
}

TEST_F(TaskSumsOf, tasks_that_began_after_a_census_without_any_have_half_of_the_time_between) {
  sums_.add(census({}), 100 * kMs, thread_of_);
  sums_.add(census({task(1, 12, AwaitedKind::lock)}), 50 * kMs, thread_of_);
  sums_.add(census({}), 20 * kMs, thread_of_);
  sums_.add(census({}), 20 * kMs, thread_of_);
  sums_.put();
  ASSERT_EQ(seen_.times.size(), 1u);
  EXPECT_EQ(seen_.times[0].time, (25 + 10) * kMs);
  EXPECT_EQ(seen_.times[0].seen, 1u);
}

TEST_F(TaskSumsOf, a_row_has_the_chain_with_its_lines_outermost_first) {
  sums_.add(census({task(1, 12, AwaitedKind::lock)}), kMs, thread_of_);
  sums_.put();
  ASSERT_EQ(seen_.stacks.size(), 2u);
  const profile::TaskStack& leaf = seen_.stacks[seen_.times[0].stack.value - 1];
  EXPECT_EQ(frames_.frame(leaf.frame).qualified_name, "Lock.acquire");
  EXPECT_EQ(frames_.frame(leaf.frame).line, 50);
  const profile::TaskStack& root = seen_.stacks[leaf.parent.value - 1];
  EXPECT_EQ(frames_.frame(root.frame).function, "handle");
  EXPECT_EQ(frames_.frame(root.frame).line, 12);
  EXPECT_FALSE(root.parent);
}

TEST_F(TaskSumsOf, what_is_ready_or_runs_is_apart_from_what_waits) {
  using python::TaskState;
  sums_.add(census({task(1, 12, AwaitedKind::none, TaskState::ready),
                    task(2, 12, AwaitedKind::none, TaskState::running), task(3, 12, AwaitedKind::event)}),
            kMs, thread_of_);
  sums_.put();
  std::vector<profile::TaskState> states;
  for (const auto& row : seen_.times) states.push_back(row.state);
  EXPECT_EQ(states, (std::vector{profile::TaskState::ready, profile::TaskState::running,
                                 profile::TaskState::waiting}));
}

TEST_F(TaskSumsOf, the_longest_is_of_one_task_that_every_census_found_there) {
  sums_.add(census({task(1, 12, AwaitedKind::event)}), 10 * kMs, thread_of_);
  sums_.add(census({task(1, 12, AwaitedKind::event)}), 20 * kMs, thread_of_);
  sums_.add_again(40 * kMs);
  sums_.add(census({task(1, 13, AwaitedKind::event)}), 80 * kMs, thread_of_);
  sums_.add(census({task(1, 12, AwaitedKind::event)}), 160 * kMs, thread_of_);
  sums_.put();
  EXPECT_EQ(seen_.times[0].longest, 60 * kMs);
  EXPECT_EQ(seen_.times[0].time, (10 + 20 + 40 + 40 + 80) * kMs);
  EXPECT_EQ(seen_.times[1].longest, 0);
}

TEST_F(TaskSumsOf, sleeps_of_different_lengths_are_one_row_and_locks_of_different_classes_two) {
  auto tasks = census({task(1, 12, AwaitedKind::sleep), task(2, 12, AwaitedKind::sleep),
                       task(3, 12, AwaitedKind::semaphore), task(4, 12, AwaitedKind::semaphore)});
  tasks.tasks[0].awaited = "0.1";
  tasks.tasks[1].awaited = "0.2";
  tasks.tasks[2].awaited = "Semaphore";
  tasks.tasks[3].awaited = "BoundedSemaphore";
  sums_.add(tasks, kMs, thread_of_);
  sums_.put();
  EXPECT_EQ(seen_.times.size(), 3u);
}

TEST_F(TaskSumsOf, a_row_has_the_tasks_of_the_last_census_and_counts_those_that_went_on) {
  auto first = census(
      {task(1, 12, AwaitedKind::lock), task(2, 12, AwaitedKind::lock), task(3, 12, AwaitedKind::lock)});
  sums_.add(first, kMs, thread_of_);
  sums_.add_again(kMs);
  sums_.put();
  EXPECT_EQ(seen_.times[0].at_end, 3u);
  EXPECT_EQ(seen_.times[0].went_on, 0u);
  auto second = census({task(1, 12, AwaitedKind::lock), task(2, 13, AwaitedKind::lock)});
  sums_.add(second, kMs, thread_of_);
  sums_.put();
  EXPECT_EQ(seen_.times[0].at_end, 1u);
  EXPECT_EQ(seen_.times[0].went_on, 2u) << "one is at another line, one has ended";
  second.tasks[0].wait_identity = 5;
  sums_.add(second, kMs, thread_of_);
  sums_.put();
  EXPECT_EQ(seen_.times[0].at_end, 1u);
  EXPECT_EQ(seen_.times[0].went_on, 3u) << "it waits for another future";
  sums_.add(census({}), kMs, thread_of_);
  sums_.put();
  EXPECT_EQ(seen_.times[0].at_end, 0u);
}

TEST_F(TaskSumsOf, a_change_of_the_number_of_tasks_counts_with_the_time_between_two_censuses) {
  const auto bins = [&](size_t row) { return seen_.times[row].changes->bins; };
  sums_.add(census({task(1, 12, AwaitedKind::lock), task(2, 12, AwaitedKind::lock)}), 100 * kMs, thread_of_);
  sums_.put();
  EXPECT_EQ(seen_.times[0].changes, profile::TaskChanges()) << "nothing is known of the time before";
  // One goes on to another line, and one comes.
  sums_.add(census({task(1, 12, AwaitedKind::lock), task(2, 13, AwaitedKind::lock),
                    task(3, 13, AwaitedKind::lock)}),
            50 * kMs, thread_of_);
  sums_.put();
  EXPECT_EQ(std::abs(bins(0)[0]), 50 * kMs);
  EXPECT_EQ(bins(1)[0], -2 * bins(0)[0]) << "with the same sign in all rows";
  // Others wait in their places: the numbers do not change.
  sums_.add(census({task(4, 12, AwaitedKind::lock), task(5, 13, AwaitedKind::lock),
                    task(6, 13, AwaitedKind::lock)}),
            50 * kMs, thread_of_);
  sums_.add_again(70 * kMs);
  sums_.add(census({task(5, 13, AwaitedKind::lock), task(6, 13, AwaitedKind::lock)}), 80 * kMs, thread_of_);
  sums_.put();
  EXPECT_EQ(bins(0)[1], 0);
  EXPECT_EQ(std::abs(bins(0)[2]), 80 * kMs);
  EXPECT_EQ(bins(1)[2], 0);
}

TEST_F(TaskSumsOf, changes_have_signs_by_chance) {
  int same = 0;
  float sum = 0;
  constexpr int kCensuses = 32 * 200;
  for (int i = 0; i <= kCensuses; ++i) {
    std::vector<python::AsyncTask> tasks;
    if (i % 2 == 1) tasks.push_back(task(1, 12, AwaitedKind::lock));
    sums_.add(census(tasks), kMs, thread_of_);
  }
  sums_.put();
  for (const float bin : seen_.times[0].changes->bins) {
    sum += bin * bin / (float(kMs) * float(kMs));
    same += bin == seen_.times[0].changes->bins[0];
  }
  // The sum of 6,400 squares, from 32 bins: with a standard error of a quarter.
  EXPECT_NEAR(sum, kCensuses, 0.75 * kCensuses);
  EXPECT_LT(same, 16);
}

TEST_F(TaskSumsOf, tasks_are_counted_by_the_stack_of_the_task_that_waits_for_them) {
  const auto at = [](uint64_t address, int32_t line, std::vector<uint32_t> awaits) {
    python::AsyncTask out = task(address, line, AwaitedKind::gather);
    out.awaits = std::move(awaits);
    return out;
  };
  const auto other = [](uint64_t address) {
    python::AsyncTask out = task(address, 0, AwaitedKind::sleep);
    out.frames = {{1, 50}};
    return out;
  };
  // Two tasks wait for the same one: the first one counts. An index that no task has is left out.
  sums_.add(census({at(1, 12, {1, 2, 9}), other(2), other(3), at(4, 14, {2}), other(5)}), kMs, thread_of_);
  sums_.add(census({at(1, 12, {1}), other(2)}), kMs, thread_of_);
  sums_.put();
  ASSERT_EQ(seen_.groups.size(), 2u);
  std::map<std::pair<uint32_t, int32_t>, uint64_t> waits;  // by group, and the line of the waiter's coroutine
  for (const profile::TaskWaiter& row : seen_.waiters) {
    int32_t line = 0;
    if (row.stack) {
      const profile::TaskStack& leaf = seen_.stacks[row.stack.value - 1];
      line = frames_.frame(seen_.stacks[leaf.parent.value - 1].frame).line;
    }
    waits[{row.group.value, line}] = row.seen;
  }
  EXPECT_EQ(waits,
            (std::map<std::pair<uint32_t, int32_t>, uint64_t>{{{1, 0}, 3}, {{2, 12}, 3}, {{2, 0}, 1}}));
}

TEST_F(TaskSumsOf, jobs_are_counted_by_the_stacks_of_the_tasks_that_wait_for_them) {
  const auto at = [](uint64_t address, int32_t line, std::vector<uint32_t> awaits) {
    python::AsyncTask out = task(address, line, AwaitedKind::gather);
    out.awaits = std::move(awaits);
    return out;
  };
  // The first task waits for the second, and that for a job. Two tasks wait for each other.
  auto tasks = census({at(1, 12, {1}), task(2, 14, AwaitedKind::concurrent_future), at(3, 16, {3}),
                       at(4, 18, {2}), task(5, 0, AwaitedKind::none)});
  tasks.tasks.back().frames.clear();
  tasks.functions.push_back({"resize", "resize", "/app/images.py", 5});
  tasks.jobs = {{2, 1}, {2, {}}, {2, 2}, {2, 4}};
  sums_.add(tasks, kMs, thread_of_);
  sums_.put();
  tasks.jobs = {{2, 1}};
  sums_.add(tasks, kMs, thread_of_);
  sums_.add_again(kMs);
  sums_.put();
  ASSERT_EQ(seen_.job_waiters.size(), 3u);
  const auto lines = [&](profile::TaskStackId stack) {
    std::vector<int32_t> found;
    for (; stack; stack = seen_.stacks[stack.value - 1].parent)
      found.push_back(frames_.frame(seen_.stacks[stack.value - 1].frame).line);
    return found;
  };
  const profile::JobWaiter& first = seen_.job_waiters[0];
  EXPECT_EQ(first.process, profile::ProcessId(1));
  EXPECT_EQ(frames_.frame(first.frame).function, "resize");
  EXPECT_EQ(frames_.frame(first.frame).line, 0);
  EXPECT_EQ(first.seen, 3u);
  EXPECT_EQ(lines(first.stack), (std::vector<int32_t>{50, 14, 50, 12}));
  EXPECT_EQ(seen_.job_waiters[1].stack, profile::TaskStackId());
  EXPECT_EQ(seen_.job_waiters[1].seen, 2u) << "no task, and one without a stack";
  EXPECT_EQ(lines(seen_.job_waiters[2].stack).size(), 32u) << "the chain of a circle has an end";
}

TEST_F(TaskSumsOf, ready_tasks_of_each_loop_have_the_moment_of_their_census) {
  using python::TaskState;
  TaskSums sums(profile::ProcessId(1), seen_, interner_, ids_, 1000 * kMs);
  auto tasks = census({task(1, 12, AwaitedKind::none, TaskState::ready),
                       task(2, 12, AwaitedKind::none, TaskState::ready), task(3, 12, AwaitedKind::event)});
  sums.add(census({task(3, 12, AwaitedKind::event)}), 100 * kMs, thread_of_);
  sums.add_again(50 * kMs);
  sums.add(tasks, 10 * kMs, thread_of_, 2 * kMs);
  EXPECT_EQ(seen_.ready, (std::vector{profile::ReadyTasks{profile::EventLoopId(1), 1160 * kMs, 2 * kMs, 2}}));
}

TEST_F(TaskSumsOf, of_many_censuses_with_ready_tasks_the_newest_are_kept) {
  const auto tasks = census({task(1, 12, AwaitedKind::none, python::TaskState::ready)});
  for (uint32_t i = 0; i < TaskSums::kMostReady + 3; ++i) sums_.add(tasks, kMs, thread_of_);
  EXPECT_EQ(seen_.ready.size(), TaskSums::kMostReady);
  EXPECT_EQ(seen_.ready[2].time, (TaskSums::kMostReady + 3) * kMs);
  EXPECT_EQ(seen_.ready[3].time, 4 * kMs);
}

TEST_F(TaskSumsOf, a_group_counts_how_its_tasks_grow_in_number) {
  std::vector<python::AsyncTask> tasks = {task(1, 12, AwaitedKind::event), task(2, 12, AwaitedKind::event)};
  sums_.add(census(tasks), 100 * kMs, thread_of_);
  tasks.push_back(task(3, 13, AwaitedKind::future));
  tasks.back().unobserved = true;
  sums_.add(census(tasks), 100 * kMs, thread_of_);
  sums_.add_again(100 * kMs);
  tasks.push_back(task(4, 13, AwaitedKind::future));
  tasks.push_back(task(5, 13, AwaitedKind::future));
  sums_.add(census(tasks), 100 * kMs, thread_of_);
  sums_.put();
  ASSERT_EQ(seen_.groups.size(), 1u);
  profile::TaskGroup expected;
  expected.loop = profile::EventLoopId(1);
  expected.frame = seen_.groups[0].frame;
  expected.lasted = 300 * kMs;
  expected.times = 4;
  expected.first = 2;
  expected.last = 5;
  expected.begun = 3;
  expected.rises = 2;
  expected.mean_begin = (100 + 300 + 300) * kMs / 3;
  expected.last_begin = 300 * kMs;
  expected.unobserved = 1;
  EXPECT_EQ(seen_.groups[0], expected);
  EXPECT_EQ(frames_.frame(expected.frame).function, "handle");
  EXPECT_EQ(frames_.frame(expected.frame).line, 0);
}

TEST_F(TaskSumsOf, a_task_is_gone_from_its_group_when_two_censuses_do_not_find_it) {
  const auto one = census({task(1, 12, AwaitedKind::event)});
  const auto both = census({task(1, 12, AwaitedKind::event), task(2, 12, AwaitedKind::event)});
  for (const auto* found : {&both, &one, &both, &one}) sums_.add(*found, kMs, thread_of_);
  sums_.put();
  EXPECT_EQ(seen_.groups[0].gone, 0u);
  EXPECT_EQ(seen_.groups[0].begun, 0u);
  sums_.add(one, kMs, thread_of_);
  sums_.put();
  EXPECT_EQ(seen_.groups[0].gone, 1u);
}

TEST_F(TaskSumsOf, a_task_of_another_coroutine_at_the_same_address_is_another) {
  sums_.add(census({task(1, 12, AwaitedKind::event)}), kMs, thread_of_);
  auto other = census({task(1, 12, AwaitedKind::event)});
  other.tasks[0].frames = {{1, 50}};
  sums_.add(other, kMs, thread_of_);
  sums_.put();
  ASSERT_EQ(seen_.groups.size(), 2u);
  EXPECT_EQ(seen_.groups[0].gone, 1u);
  EXPECT_EQ(seen_.groups[0].last, 0u);
  EXPECT_EQ(seen_.groups[1].first, 1u);
}

TEST_F(TaskSumsOf, a_task_that_could_not_be_read_counts_as_it_was_in_the_census_before) {
  const auto both = census({task(1, 12, AwaitedKind::event), task(2, 13, AwaitedKind::event)});
  auto one = census({task(2, 13, AwaitedKind::event)});
  one.unproved = 1;
  one.missed = {RemoteAddress(1), RemoteAddress(77)};
  sums_.add(both, 10 * kMs, thread_of_);
  sums_.add(one, 10 * kMs, thread_of_);
  sums_.add(census({}), 10 * kMs, thread_of_);
  sums_.put();
  ASSERT_EQ(seen_.times.size(), 2u);
  EXPECT_EQ(seen_.times[0].time, 25 * kMs);
  EXPECT_EQ(seen_.times[1].time, 25 * kMs);
  EXPECT_EQ(seen_.times[0].seen, 1u);
}

TEST_F(TaskSumsOf, a_row_that_has_not_grown_is_not_put_again) {
  sums_.add(census({task(1, 12, AwaitedKind::event)}), kMs, thread_of_);
  sums_.put();
  seen_.put_task_time(profile::TaskTimeId(1), {});
  sums_.put();
  EXPECT_EQ(seen_.times[0], profile::TaskTime());
}

TEST(TaskSumsOfTwo, share_the_numbers_of_rows_and_each_has_its_loop) {
  profile::Profile frames;
  profile::Interner interner(frames);
  profile::TaskRows seen;
  TaskRowIds ids;
  const auto no_thread = [](uint64_t) { return profile::ThreadId(); };
  TaskSums one(profile::ProcessId(1), seen, interner, ids), two(profile::ProcessId(2), seen, interner, ids);
  for (TaskSums* sums : {&one, &two}) {
    sums->add(census({task(1, 12, AwaitedKind::event)}), kMs, no_thread);
    sums->put();
  }
  ASSERT_EQ(seen.times.size(), 2u);
  EXPECT_EQ(seen.loops[seen.times[1].loop.value - 1].process, profile::ProcessId(2));
  EXPECT_EQ(seen.stacks.size(), 2u) << "the same chain is there once";
}

constexpr Nanoseconds kNow = 1'000 * kSecond;

// The shortest, longest and average pause of a thousand.
struct Pauses {
  Pauses(CensusPace& pace, const CensusPace::Taken& census, Nanoseconds now = kNow) {
    for (int i = 0; i < 1000; ++i) {
      pace.taken(now, census);
      least = std::min(least, pace.due() - now);
      most = std::max(most, pace.due() - now);
      mean += static_cast<double>(pace.due() - now) / 1000;
    }
  }
  Nanoseconds least = kSecond, most = 0;
  double mean = 0;
};

TEST(CensusPace, is_a_fiftieth_of_a_second_and_never_in_step) {
  CensusPace pace(2.0, 200, 1, kNow);
  EXPECT_LE(pace.due(), 0);
  const Pauses pauses(pace, {0, 5});
  EXPECT_GE(pauses.least, 10 * kMs);
  EXPECT_LT(pauses.least, 12 * kMs);
  EXPECT_GT(pauses.most, 28 * kMs);
  EXPECT_LE(pauses.most, 30 * kMs);
}

TEST(CensusPace, is_half_the_rate_of_samples) {
  for (const auto& [rate, pause] :
       {std::pair(1.0, 100), {20.0, 100}, {50.0, 40}, {100.0, 20}, {1000.0, 20}, {0.0, 20}}) {
    CensusPace pace(2.0, rate, 1, kNow);
    EXPECT_NEAR(Pauses(pace, {0, 5}).mean, static_cast<double>(pause * kMs), 0.03 * pause * kMs) << rate;
  }
}

TEST(CensusPace, takes_the_budget_for_few_tasks_and_half_of_it_for_many) {
  CensusPace pace(2.0, 200, 1, kNow);
  EXPECT_NEAR(Pauses(pace, {10 * kMs, 99}).mean, 0.5 * kSecond, 0.015 * kSecond);
  EXPECT_NEAR(Pauses(pace, {10 * kMs, 100}).mean, 1.0 * kSecond, 0.03 * kSecond);
}

TEST(CensusPace, without_a_budget_takes_at_most_a_quarter_of_a_cpu) {
  CensusPace pace({}, 200, 1, kNow);
  EXPECT_NEAR(Pauses(pace, {100 * kMs, 5}).mean, 400.0 * kMs, 15.0 * kMs);
}

TEST(CensusPace, is_slower_when_the_program_has_not_run_for_a_minute) {
  CensusPace pace(2.0, 200, 1, kNow);
  pace.taken(kNow, {0, 5});
  for (const auto& census : {CensusPace::Taken{0, 5, true}, CensusPace::Taken{}}) {
    EXPECT_NEAR(Pauses(pace, census, kNow + 59 * kSecond).mean, 20.0 * kMs, 0.6 * kMs);
  }
  EXPECT_NEAR(Pauses(pace, {0, 5, true}, kNow + 60 * kSecond).mean, 100.0 * kMs, 3.0 * kMs);
  EXPECT_GE(Pauses(pace, {}, kNow + 60 * kSecond).least, CensusPace::kRarely / 2);
}

// Of a program that waits for 40 ms in each second and is idle otherwise.
TEST(CensusPace, gives_short_waits_after_an_idle_time_as_much_as_they_took) {
  constexpr Nanoseconds kWait = 40 * kMs, kSeconds = 2000;
  CensusPace pace(2.0, 200, 1, kNow);
  Nanoseconds counted = 0, last = kNow;
  bool did_wait = true;
  int64_t changes_before = -1;
  for (Nanoseconds now = kNow; now < kNow + kSeconds * kSecond; now = pace.due()) {
    const bool waits = (now - kNow) % kSecond < kWait;
    const int64_t changes = 2 * ((now - kNow) / kSecond) + (waits ? 0 : 1);
    counted += (now - last) / 2 * (Nanoseconds{did_wait} + Nanoseconds{waits});
    pace.taken(now, {0, 1, changes == changes_before});
    last = now;
    did_wait = waits;
    changes_before = changes;
  }
  EXPECT_NEAR(static_cast<double>(counted), static_cast<double>(kSeconds * kWait), 0.03 * kSeconds * kWait);
}

TEST(CensusPace, is_slow_where_there_is_no_task) {
  CensusPace pace(2.0, 200, 1, kNow);
  EXPECT_NEAR(Pauses(pace, {}, kNow + CensusPace::kFirst - 1).mean, 100.0 * kMs, 3.0 * kMs);
  EXPECT_GE(Pauses(pace, {}, kNow + CensusPace::kFirst).least, CensusPace::kRarely / 2);
}

}  // namespace
}  // namespace phlox::sampler
