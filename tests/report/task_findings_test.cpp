#include "phlox/report/task_findings.h"

#include <gtest/gtest.h>

#include "phlox/report/report.h"
#include "support/profile_of.h"

namespace phlox::report {
namespace {

using namespace phlox::profile;
using namespace phlox::view;

// One process with one loop, of 300 censuses in 30 s. Stacks 1: "worker:12", 2: "worker:12;acquire:50".
class TaskFindingsOf : public testing::Test {
 protected:
  void SetUp() override {
    tasks_.put_event_loop(EventLoopId(1), {ProcessId(1), maker_.thread("MainThread", 4711), "asyncio"});
    tasks_.put_task_stack(TaskStackId(1), {{}, maker_.frame("worker:12")});
    tasks_.put_task_stack(TaskStackId(2), {TaskStackId(1), maker_.frame("acquire:50")});
    TaskCensus census;
    census.process = ProcessId(1);
    census.times = 300;
    census.span = 30 * kSecond;
    tasks_.put_task_census(TaskCensusId(1), census);
    waits_.loop = EventLoopId(1);
    waits_.stack = TaskStackId(2);
    waits_.kind = "lock";
    waits_.awaited = "Lock";
    waits_.time = 214 * 30 * kSecond;
    waits_.seen = 214 * 300;
    waits_.longest = 30 * kSecond;
    waits_.at_end = 214;
    group_.loop = EventLoopId(1);
    group_.frame = maker_.frame("worker:0");
    group_.lasted = 30 * kSecond;
    group_.times = 300;
    group_.first = 100;
    group_.last = 1000;
    group_.begun = 900;
    group_.rises = 290;
    group_.mean_begin = 15 * kSecond;
    group_.last_begin = 30 * kSecond;
  }
  std::vector<std::string> kinds() {
    texts_.clear();
    std::vector<std::string> out;
    tasks_.put_task_time(TaskTimeId(1), waits_);
    for (const Finding& finding : task_findings(profile_, tasks_)) {
      out.push_back(finding.kind);
      texts_ += finding.text + "\n";
    }
    return out;
  }
  std::vector<std::string> kinds_with_group() {
    tasks_.put_task_group(TaskGroupId(1), group_);
    return kinds();
  }
  using Kinds = std::vector<std::string>;

  Profile profile_;
  test::ProfileMaker maker_{profile_};
  TaskRows tasks_;
  TaskTime waits_;
  TaskGroup group_;
  std::string texts_;
};

TEST_F(TaskFindingsOf, a_lock_that_nobody_gets) {
  EXPECT_EQ(kinds(), Kinds{"tasks_stuck"});
  EXPECT_EQ(
      texts_,
      "214 tasks of worker (/app/app.py:12) wait for a lock (Lock), and none was seen to get it: in 30.0 s, "
      "each of about 300 censuses found all earlier ones still waiting. phlox dump names its "
      "holder, if it was taken by `async with`\n");
  waits_.at_end = 1;
  EXPECT_EQ(kinds(), Kinds{"tasks_stuck"});
  EXPECT_EQ(texts_.substr(0, texts_.find(". ")),
            "one task of worker (/app/app.py:12) waits for a lock (Lock), and was not seen to get it: in "
            "30.0 s, each of about 300 censuses found it still waiting");
}

TEST_F(TaskFindingsOf, a_lock_that_one_of_them_got_is_none) {
  waits_.went_on = 1;
  EXPECT_EQ(kinds(), Kinds{});
}

TEST_F(TaskFindingsOf, a_lock_that_nobody_waits_for_any_more_is_none) {
  waits_.at_end = 0;
  EXPECT_EQ(kinds(), Kinds{});
}

TEST_F(TaskFindingsOf, a_lock_waited_for_for_a_short_time_is_none) {
  waits_.longest = 4 * kSecond;
  EXPECT_EQ(kinds(), Kinds{});
  // Long enough, but in few censuses.
  waits_.longest = 30 * kSecond;
  tasks_.censuses[0].times = 8;
  EXPECT_EQ(kinds(), Kinds{});
}

TEST_F(TaskFindingsOf, a_semaphore_of_one_task_is_none_because_it_may_be_a_signal) {
  waits_.kind = "semaphore";
  EXPECT_EQ(kinds(), Kinds{"tasks_stuck"});
  waits_.at_end = 1;
  EXPECT_EQ(kinds(), Kinds{});
}

TEST_F(TaskFindingsOf, what_tasks_may_wait_for_as_long_as_they_like_is_none) {
  for (const char* kind :
       {"queue_item", "stream_data", "socket", "sleep", "event", "condition", "future", "task", "gather",
        "server", "concurrent_future", "thread_job", "subprocess", "object", ""}) {
    waits_.kind = kind;
    EXPECT_EQ(kinds(), Kinds{}) << kind;
  }
}

TEST_F(TaskFindingsOf, futures_that_nothing_else_refers_to) {
  waits_.kind = "lost_future";
  waits_.awaited.clear();
  EXPECT_EQ(kinds(), Kinds{"tasks_lost"});
  EXPECT_EQ(
      texts_,
      "214 tasks of worker (/app/app.py:12) can only end if they are cancelled: each awaits a future that "
      "nothing else refers to, so nothing can set its result\n");
  // `await asyncio.Future()` at the end of main() keeps a program running.
  waits_.at_end = 1;
  EXPECT_EQ(kinds(), Kinds{});
}

TEST_F(TaskFindingsOf, a_number_of_tasks_that_only_grows) {
  waits_.kind = "future";
  EXPECT_EQ(kinds_with_group(), Kinds{"tasks_grow"});
  EXPECT_EQ(texts_,
            "the number of tasks of worker (/app/app.py:1) only grows: from 100 to 1,000 in 30.0 s, 30 a "
            "second. Most "
            "await a future, none was seen to end. They leak, unless each belongs to something that is still "
            "open, such as a connection\n");
  group_.unobserved = 1000;
  kinds_with_group();
  EXPECT_NE(texts_.find("none was seen to end, and nothing waits for their end."), std::string::npos)
      << texts_;
}

TEST_F(TaskFindingsOf, tasks_that_end_are_no_leak) {
  waits_.kind = "future";
  group_.gone = 10;
  EXPECT_EQ(kinds_with_group(), Kinds{});
}

TEST_F(TaskFindingsOf, tasks_that_began_with_the_program_or_with_its_load_are_no_leak) {
  waits_.kind = "future";
  group_.mean_begin = 3 * kSecond;
  EXPECT_EQ(kinds_with_group(), Kinds{});
  group_.mean_begin = 27 * kSecond;
  EXPECT_EQ(kinds_with_group(), Kinds{});
  group_.mean_begin = 15 * kSecond;
  group_.last_begin = 20 * kSecond;
  EXPECT_EQ(kinds_with_group(), Kinds{});
  group_.last_begin = 30 * kSecond;
  group_.rises = 3;
  EXPECT_EQ(kinds_with_group(), Kinds{});
}

TEST_F(TaskFindingsOf, a_pool_of_connections_and_consumers_is_no_leak) {
  for (const char* kind : {"stream_data", "stream_room", "socket", "queue_item", "server", "sleep"}) {
    waits_.kind = kind;
    EXPECT_EQ(kinds_with_group(), Kinds{}) << kind;
  }
}

TEST_F(TaskFindingsOf, tasks_that_an_installed_package_lets_wait_are_no_leak) {
  waits_.kind = "future";
  waits_.stack = TaskStackId(3);
  tasks_.put_task_stack(
      TaskStackId(3),
      {TaskStackId(1), maker_.frame("/usr/lib/python3.12/site-packages/websockets/messages.py/get:92")});
  EXPECT_EQ(kinds_with_group(), Kinds{});
}

TEST_F(TaskFindingsOf, a_number_that_is_not_known_grows_not) {
  waits_.kind = "future";
  tasks_.censuses[0].beyond = 1;
  EXPECT_EQ(kinds_with_group(), Kinds{});
}

TEST_F(TaskFindingsOf, are_findings_of_the_report_of_the_whole_recording) {
  maker_.add(ThreadId(1), "main:3", kSecond);
  kinds();
  ReportOptions options;
  options.tasks = &tasks_;
  auto report = make_report(profile_, options);
  ASSERT_TRUE(report);
  ASSERT_FALSE(report->findings.empty());
  EXPECT_EQ(report->findings[0].kind, "tasks_stuck");
  EXPECT_NE(report_summary(*report).find("214 tasks of worker"), std::string::npos)
      << report_summary(*report);
  options.choices.to = kSecond / 2;
  report = make_report(profile_, options);
  ASSERT_TRUE(report);
  for (const Finding& finding : report->findings) EXPECT_NE(finding.kind, "tasks_stuck");
}

}  // namespace
}  // namespace phlox::report
