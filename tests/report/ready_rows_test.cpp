#include "phlox/report/ready_rows.h"

#include <gtest/gtest.h>

#include "phlox/report/report.h"
#include "phlox/view/quality.h"
#include "support/profile_of.h"

namespace phlox::report {
namespace {

using namespace phlox::profile;
using namespace phlox::view;

constexpr Nanoseconds kMs = 1'000'000, kStart = 1'000 * kSecond;

StallRow stall(Nanoseconds start, Nanoseconds wall, Nanoseconds least, Nanoseconds error = 0) {
  StallRow row;
  row.stall.start = start;
  row.stall.wall = wall;
  row.stall.least = least;
  row.stall.error = error;
  return row;
}

ReadyTasks ready(Nanoseconds time, uint64_t tasks) {
  return {EventLoopId(1), kStart + time, 2 * kMs, tasks};
}

const Profile kNothing;
const ThreadMoments kNoMoments(kNothing, ThreadId());

TEST(ReadyTasksOf, a_stall_waited_at_least_until_the_end_of_its_single_wait) {
  StallRow row = stall(100 * kMs, 400 * kMs, 400 * kMs);
  put_ready(row, kStart, {ready(90 * kMs, 9), ready(200 * kMs, 5), ready(300 * kMs, 7), ready(499 * kMs, 9)},
            kNoMoments);
  EXPECT_EQ(row.ready, 7u) << "two censuses are not within the stall";
  EXPECT_EQ(row.ready_for, (500 - 202) * kMs);
}

TEST(ReadyTasksOf, a_stall_with_a_shorter_wait_are_proved_by_the_part_of_it_that_is_sure) {
  // One wait of 300 ms between 100 and 500 ms: at least from 200 to 400 ms.
  StallRow row = stall(100 * kMs, 400 * kMs, 300 * kMs);
  put_ready(row, kStart, {ready(150 * kMs, 5), ready(250 * kMs, 6)}, kNoMoments);
  EXPECT_EQ(row.ready, 6u);
  EXPECT_EQ(row.ready_for, (400 - 252) * kMs);
  row = stall(100 * kMs, 400 * kMs, 300 * kMs, 10 * kMs);
  put_ready(row, kStart, {ready(205 * kMs, 5), ready(250 * kMs, 6)}, kNoMoments);
  EXPECT_EQ(row.ready_for, (390 - 252) * kMs);
}

TEST(ReadyTasksOf, a_stall_without_a_single_wait_are_counted_only) {
  StallRow row = stall(100 * kMs, 400 * kMs, 0);
  put_ready(row, kStart, {ready(200 * kMs, 5)}, kNoMoments);
  EXPECT_EQ(row.ready, 5u);
  EXPECT_EQ(row.ready_for, 0);
}

constexpr int16_t kEpoll = 232, kNanosleep = 230;
const std::string kLib = "/usr/lib/python3.12/";
const std::string kOnce = "main;" + kLib + "asyncio/base_events.py/_run_once";
const std::string kPoll = kOnce + ";" + kLib + "selectors.py/select";
const std::string kCallback = kOnce + ";" + kLib + "asyncio/events.py/_run;";

TEST(ReadyTasksOf, a_stall_whose_single_wait_is_known_are_proved_by_that_wait) {
  Profile profile;
  test::ProfileMaker maker(profile);
  const ThreadId main = maker.thread("MainThread", 4711);
  maker.add(main, "compute:7", 200 * kMs);
  maker.put(maker.blocked(main, "read_config:28", 150 * kMs, 230));
  maker.add(main, "compute:8", 250 * kMs);
  StallRow row = stall(0, 600 * kMs, 150 * kMs);
  const ThreadMoments moments(profile, main);
  put_ready(row, kStart, {ready(100 * kMs, 5), ready(210 * kMs, 6), ready(400 * kMs, 7)}, moments);
  EXPECT_EQ(row.ready, 7u);
  EXPECT_EQ(row.ready_for, 350 * kMs - 2'000 - 212 * kMs);
  put_ready(row = stall(0, 600 * kMs, 150 * kMs), kStart, {ready(210 * kMs, 6)}, kNoMoments);
  EXPECT_EQ(row.ready_for, 0) << "the wait may have been anywhere";
}

// Of a recording of the kernel's capture: it polls for 100 ms, computes for 50 and sleeps for 400.
class ReadyRows : public testing::Test {
 protected:
  ReadyRows() {
    profile_.emit_meta("machine", "x86_64");
    Process process = profile_.process(ProcessId(1));
    process.mode = kInTheKernel;
    profile_.emit(ProcessId(1), process);
    main_ = maker_.thread("MainThread", 4711);
    maker_.put(maker_.blocked(main_, kPoll, 100 * kMs, kEpoll));
    maker_.add(main_, kCallback + "compute:7", 50 * kMs);
    Sample sleeps = maker_.blocked(main_, kCallback + "read_config:28", 400 * kMs, kNanosleep);
    sleeps.samples = 3;
    maker_.put(sleeps);
    maker_.put(maker_.blocked(main_, kPoll, 450 * kMs, kEpoll));
    tasks_.put_event_loop(EventLoopId(1), {ProcessId(1), main_, "asyncio"});
    TaskTime time;
    time.loop = EventLoopId(1);
    time.kind = "sleep";
    time.time = kSecond;
    tasks_.put_task_time(TaskTimeId(1), time);
    time.state = TaskState::ready;
    time.kind.clear();
    tasks_.put_task_time(TaskTimeId(2), time);
    TaskCensus census;
    census.process = ProcessId(1);
    census.times = 10;
    census.span = kSecond;
    tasks_.put_task_census(TaskCensusId(1), census);
  }
  void found(Nanoseconds time, uint64_t tasks) {
    tasks_.put_ready_tasks(ReadyTasksId(static_cast<uint32_t>(tasks_.ready.size() + 1)), ready(time, tasks));
  }
  Report report() {
    ReportOptions options;
    options.tasks = &tasks_;
    auto made = make_report(profile_, options);
    return made ? *std::move(made) : Report();
  }

  Profile profile_;
  test::ProfileMaker maker_{profile_};
  ThreadId main_;
  TaskRows tasks_;
};

TEST_F(ReadyRows, say_what_the_thread_of_the_loop_did_meanwhile) {
  found(50 * kMs, 1);
  found(110 * kMs, 20);
  found(200 * kMs, 40);
  found(300 * kMs, 30);
  found(2 * kSecond, 9);
  const Report made = report();
  ASSERT_EQ(made.awaits.size(), 1u);
  EXPECT_EQ(made.awaits[0].most_ready, 40u);
  const auto& rows = made.awaits[0].ready_rows;
  ASSERT_EQ(rows.size(), 4u);
  EXPECT_EQ(rows[0].name, "read_config");
  EXPECT_EQ(rows[0].line, 28);
  EXPECT_EQ(rows[0].words, "blocked");
  EXPECT_DOUBLE_EQ(rows[0].share, 0.7);
  EXPECT_EQ(rows[0].most, 40u);
  EXPECT_EQ(rows[0].times, 2u);
  EXPECT_EQ(rows[1].name, "compute");
  EXPECT_EQ(rows[1].words, "on a CPU");
  EXPECT_EQ(rows[2].words, "not known") << "the recording had ended";
  EXPECT_EQ(rows[3].words, "the loop itself");
  EXPECT_NE(report_text(made).find("What ran while tasks were ready to run: Thread MainThread"),
            std::string::npos);
  EXPECT_NE(report_json(made).find("\"while_ready\": ["), std::string::npos);
}

TEST_F(ReadyRows, are_told_of_the_stall_that_they_waited_for) {
  found(200 * kMs, 37);
  const Report made = report();
  ASSERT_EQ(made.loops.size(), 1u);
  ASSERT_EQ(made.loops[0].stall_rows.size(), 1u);
  const StallRow& row = made.loops[0].stall_rows[0];
  EXPECT_EQ(row.ready, 37u);
  // The wait of 400 ms began at 150 ms.
  EXPECT_EQ(row.ready_for, (550 - 202) * kMs - 2'000);
  EXPECT_NE(
      made.loops[0].sentence.find(". In the stall at 0.10 s up to 37 tasks were ready to run; one of them "
                                  "waited at least 348 ms for its turn"),
      std::string::npos)
      << made.loops[0].sentence;
  EXPECT_NE(report_text(made).find("37 for at least 348 ms"), std::string::npos) << report_text(made);
}

TEST_F(ReadyRows, have_no_table_where_hardly_a_task_was_ready) {
  tasks_.times[1].time = 10 * kMs;
  found(200 * kMs, 1);
  EXPECT_EQ(report_text(report()).find("What ran while"), std::string::npos);
}

}  // namespace
}  // namespace phlox::report
