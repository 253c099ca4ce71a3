#include "phlox/report/await_groups.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "phlox/report/await_rows.h"
#include "phlox/report/report.h"
#include "support/profile_of.h"

namespace phlox::report {
namespace {

using namespace phlox::profile;
using namespace phlox::view;

constexpr Nanoseconds kMs = 1'000'000;

// One loop; stacks 1: "handle:12", 2: "handle:12;acquire:50", 3: "handle:12;sleep:9", 4: "main:3".
class AwaitGroups : public testing::Test {
 protected:
  void SetUp() override {
    tasks_.put_event_loop(EventLoopId(1), {ProcessId(1), maker_.thread("MainThread"), "asyncio"});
    const FrameId handle = maker_.frame("handle:12");
    tasks_.put_task_stack(TaskStackId(1), {{}, handle});
    tasks_.put_task_stack(TaskStackId(2), {TaskStackId(1), maker_.frame("acquire:50")});
    tasks_.put_task_stack(TaskStackId(3), {TaskStackId(1), maker_.frame("sleep:9")});
    tasks_.put_task_stack(TaskStackId(4), {{}, maker_.frame("main:3")});
  }
  void put(uint32_t stack, TaskState state, const std::string& kind, Nanoseconds time) {
    const auto id = static_cast<uint32_t>(tasks_.times.size() + 1);
    tasks_.put_task_time(TaskTimeId(id),
                         {EventLoopId(1), TaskStackId(stack), state, kind, "", time, 2, time / 2});
  }
  Profile profile_;
  test::ProfileMaker maker_{profile_};
  TaskRows tasks_;
};

TEST_F(AwaitGroups, are_by_outermost_line_and_innermost_await) {
  put(2, TaskState::waiting, "lock", 10 * kMs);
  put(3, TaskState::waiting, "lock", 30 * kMs);
  put(3, TaskState::waiting, "sleep", 20 * kMs);
  put(4, TaskState::waiting, "sleep", 1 * kMs);
  const auto loops = loop_awaits(tasks_);
  ASSERT_EQ(loops.size(), 1u);
  EXPECT_EQ(loops[0].waiting, 61 * kMs);
  ASSERT_EQ(loops[0].groups.size(), 3u);
  const AwaitGroup& first = loops[0].groups[0];
  EXPECT_EQ(profile_.frame(first.frame).function, "handle");
  EXPECT_EQ(profile_.frame(first.frame).line, 12);
  EXPECT_EQ(first.kind, "lock");
  EXPECT_EQ(first.time, 40 * kMs);
  EXPECT_EQ(first.seen, 4u);
  EXPECT_EQ(first.longest, 15 * kMs);
  EXPECT_EQ(first.stack, TaskStackId(3)) << "the chain with the most time is the example";
  const auto frames = task_frames(tasks_, first.stack);
  ASSERT_EQ(frames.size(), 2u);
  EXPECT_EQ(profile_.frame(frames[0]).function, "handle");
}

TEST_F(AwaitGroups, do_not_hold_what_is_ready_or_runs) {
  put(1, TaskState::ready, "", 10 * kMs);
  put(1, TaskState::running, "", 20 * kMs);
  const auto loops = loop_awaits(tasks_);
  EXPECT_TRUE(loops[0].groups.empty());
  EXPECT_EQ(loops[0].ready, 10 * kMs);
  EXPECT_EQ(loops[0].running, 20 * kMs);
  EXPECT_EQ(loops[0].waiting, 0);
}

TEST_F(AwaitGroups, the_censuses_of_two_recorders_are_added_up_and_those_of_another_process_are_not) {
  TaskCensus one;
  one.process = ProcessId(1);
  one.times = 10;
  one.span = kSecond;
  one.problem = "a list changed";
  tasks_.put_task_census(TaskCensusId(1), one);
  one.problem.clear();
  tasks_.put_task_census(TaskCensusId(2), one);
  one.process = ProcessId(2);
  tasks_.put_task_census(TaskCensusId(3), one);
  const TaskCensus sum = census_of(tasks_, ProcessId(1));
  EXPECT_EQ(sum.times, 20u);
  EXPECT_EQ(sum.span, 2 * kSecond);
  EXPECT_EQ(sum.problem, "a list changed");
  EXPECT_EQ(census_of(tasks_, ProcessId(3)).times, 0u);
}

TEST_F(AwaitGroups, the_report_has_the_number_of_censuses_and_what_is_missing) {
  maker_.add(ThreadId(1), "main:3", kSecond);
  put(2, TaskState::waiting, "lock", 15 * kSecond);
  put(4, TaskState::waiting, "sleep", 5 * kSecond);
  TaskCensus census;
  census.process = ProcessId(1);
  census.times = 100;
  census.span = 10 * kSecond;
  census.tasks = 198;
  census.unproved = 2;
  tasks_.put_task_census(TaskCensusId(1), census);
  ReportOptions options;
  options.tasks = &tasks_;
  const auto report = make_report(profile_, options);
  ASSERT_TRUE(report);
  const auto tables = await_tables(*report);
  ASSERT_EQ(tables.size(), 1u);
  EXPECT_EQ(tables[0].note,
            "Sampled every 100 ms (100 times in 10.0 s). At a time 2.0 tasks waited, 0.0 were ready to run. "
            "1.0 % of the tasks changed while they were read, and are missing here.");
  ASSERT_EQ(tables[0].rows.size(), 2u);
  EXPECT_EQ(tables[0].rows[0][0], "75.0 %");
  EXPECT_EQ(tables[0].rows[0][2], "1.5");
  EXPECT_EQ(tables[0].rows[0][4], "a lock");
  EXPECT_NE(report_json(*report).find("\"every_ns\": 100000000"), std::string::npos) << report_json(*report);
}

TEST_F(AwaitGroups, loops_without_a_table_of_their_own_have_a_row) {
  // Eight loops of eight threads in one process, and one of another process whose thread is not known.
  const ProcessId other = maker_.process(4711);
  tasks_.put_task_census(TaskCensusId(1), {ProcessId(1), 10, 1000 * kMs, 0, 90, 10});
  tasks_.put_task_census(TaskCensusId(2), {other, 10, 1000 * kMs});
  for (uint32_t i = 2; i <= 8; ++i)
    tasks_.put_event_loop(EventLoopId(i),
                          {ProcessId(1), maker_.thread("worker-" + std::to_string(i)), "asyncio"});
  tasks_.put_event_loop(EventLoopId(9), {other, {}, "Loop"});
  for (uint32_t i = 1; i <= 9; ++i)
    tasks_.put_task_time(TaskTimeId(i), {EventLoopId(i), TaskStackId(2), TaskState::waiting, "lock", "Lock",
                                         (100 - i) * 100 * kMs, 2});
  ReportOptions options;
  options.tasks = &tasks_;
  const auto report = make_report(profile_, options);
  ASSERT_TRUE(report);
  ASSERT_EQ(report->awaits.size(), 9u);
  const std::vector<Table> tables = await_tables(*report);
  ASSERT_EQ(tables.size(), 6u);
  EXPECT_NE(tables[0].note.find("10.0 % of the tasks of all loops of this process changed"),
            std::string::npos)
      << tables[0].note;
  const Table& others = tables[5];
  EXPECT_EQ(others.title, "What tasks await: the other event loops");
  ASSERT_EQ(others.rows.size(), 4u);
  EXPECT_EQ(others.rows[0][1], "9.4");
  EXPECT_NE(others.rows[0][3].find("worker-6"), std::string::npos) << others.rows[0][3];
  EXPECT_EQ(others.rows[0][5], "a lock (Lock)");
  EXPECT_EQ(others.rows[3][3], "not known, in process 4711");
}

}  // namespace
}  // namespace phlox::report
