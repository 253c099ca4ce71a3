#include "phlox/view/together.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <limits>
#include <string>
#include <utility>

#include "phlox/profile/cpu_shortage.h"
#include "phlox/profile/recorded_words.h"
#include "phlox/view/forks.h"
#include "support/profile_of.h"

namespace phlox::view {

using namespace profile;

namespace {

using test::ProfileMaker;

constexpr Nanoseconds kMs = 1'000'000;

// One thread in "main;work" for so long, on a clock that began at `boot`.
Profile made(Nanoseconds wall, const std::string& frames, int64_t boot) {
  Profile profile;
  ProfileMaker maker(profile);
  profile.emit_meta("host", "here");
  profile.emit_meta("start_monotonic_ns", std::to_string(ProfileMaker::kStart));
  profile.emit_meta("start_unix_ns", std::to_string(boot + ProfileMaker::kStart));
  profile.emit_meta("host_busy_ns", "100");
  maker.add(maker.thread("MainThread", 4711), frames, wall);
  return profile;
}

TEST(Together, values_that_fill_a_sum_each_do_not_overflow_it) {
  const auto counted = [](int64_t boot) {
    Profile profile = made(kMs, "main;work", boot);
    Sample sample = profile.samples()[0];
    sample.value = std::numeric_limits<int64_t>::max() - 1;
    profile.emit(SampleId(1), sample);
    return profile;
  };
  Profile all = counted(0);
  add_recording(all, counted(5'000 * kSecond));
  int64_t sum = 0;
  for (const Sample& sample : all.samples()) ASSERT_FALSE(__builtin_add_overflow(sum, sample.value, &sum));
  EXPECT_EQ(sum, std::numeric_limits<int64_t>::max());
}

TEST(Together, what_processes_say_about_themselves_stays_with_them) {
  Profile all = made(10 * kMs, "main;work", 0), other = made(20 * kMs, "main;work", 5'000 * kSecond);
  other.emit_meta("resource.1", "service.name=other");
  add_recording(all, other);
  EXPECT_FALSE(all.meta().contains("resource.1"));
  EXPECT_EQ(all.meta().at("resource.2"), "service.name=other");
}

TEST(Together, times_of_traces_stay_with_their_threads) {
  Profile all = made(10 * kMs, "main;work", 0), other = made(20 * kMs, "main;work", 5'000 * kSecond);
  const Nanoseconds start = ProfileMaker::kStart;
  all.emit(TraceTimeId(1), TraceTime{ThreadId(1), {{1}, {1}}, start, start + kMs});
  other.emit(TraceTimeId(1), TraceTime{ThreadId(1), {{2}, {2}}, start + kMs, start + 2 * kMs});
  add_recording(all, other);
  ASSERT_EQ(all.trace_times().size(), 2u);
  const TraceTime& added = all.trace_times()[1];
  EXPECT_EQ(added.thread, ThreadId(2));
  EXPECT_EQ(added.ids.trace[0], 2);
  EXPECT_EQ(added.start - all.samples()[1].start, kMs);
  EXPECT_EQ(added.end - added.start, kMs);
}

TEST(Together, rows_keep_what_they_refer_to) {
  Profile all = made(10 * kMs, "main;work", 0);
  EXPECT_EQ(add_recording(all, made(20 * kMs, "start;other;deep", 5'000 * kSecond)), 1u);
  ASSERT_EQ(all.samples().size(), 2u);
  const Sample& added = all.samples()[1];
  EXPECT_EQ(all.frame(all.stack(added.stack).frame).function, "deep");
  EXPECT_EQ(all.frame(all.stack(all.stack(added.stack).parent).frame).function, "other");
  EXPECT_EQ(all.thread(added.thread).process, ProcessId(2));
}

TEST(Together, a_fork_is_one_of_the_same_process) {
  Profile all = made(10 * kMs, "main;work", 0), other = made(20 * kMs, "main;work", 0);
  ProfileMaker maker(other);
  maker.process(4712);
  other.emit_meta(std::string(kForkedFrom) + "2", "1");
  add_recording(all, other);
  EXPECT_EQ(all.meta().at(std::string(kForkedFrom) + "3"), "2");
  EXPECT_FALSE(all.meta().contains(std::string(kForkedFrom) + "2"));
}

TEST(Together, recordings_of_different_times_come_one_after_the_other) {
  Profile all = made(10 * kMs, "main;work", 0);
  add_recording(all, made(20 * kMs, "main;work", 5'000 * kSecond));
  EXPECT_EQ(all.samples()[1].start, ProfileMaker::kStart + 10 * kMs);
  EXPECT_EQ(cpu_use(all).busy, 200);
}

TEST(Together, times_that_no_recorder_writes_do_not_overflow) {
  Profile all;
  for (int i = 0; i < 8; ++i) {
    Profile profile = made(kMs, "main;work", i * 5'000 * kSecond);
    for (const int64_t time : {-(int64_t{1} << 60), int64_t{1} << 60}) {
      Event event;
      event.time = time;
      profile.emit(event);
    }
    add_recording(all, profile);
  }
  for (const Event& event : all.events()) EXPECT_LE(std::abs(event.time), int64_t{1} << 62);
}

TEST(Together, recordings_that_ran_side_by_side_stay_side_by_side) {
  Profile all = made(10 * kMs, "main;work", 0);
  add_recording(all, made(20 * kMs, "main;work", 0));
  EXPECT_EQ(all.samples()[1].start, ProfileMaker::kStart);
  EXPECT_FALSE(cpu_use(all).is_known());
}

TEST(Together, await_time_keeps_its_loops_threads_and_coroutines) {
  Profile all;
  TaskRows rows;
  for (const auto& [name, time] :
       {std::pair("first", 3 * kMs), {"second", std::numeric_limits<int64_t>::max() - kMs}}) {
    Profile profile = made(kMs, name, rows.loops.empty() ? 0 : 5'000 * kSecond);
    TaskRows tasks;
    tasks.put_task_census(TaskCensusId(1), {ProcessId(1), 10, kSecond});
    tasks.put_event_loop(EventLoopId(1), {ProcessId(1), ThreadId(1), name});
    tasks.put_task_stack(TaskStackId(1), {{}, FrameId(1)});
    tasks.put_task_stack(TaskStackId(2), {TaskStackId(1), FrameId(1)});
    TaskTime row;
    row.loop = EventLoopId(1);
    row.stack = TaskStackId(2);
    row.time = time;
    row.seen = 7;
    tasks.put_task_time(TaskTimeId(1), row);
    TaskGroup group;
    group.loop = EventLoopId(1);
    group.frame = FrameId(1);
    tasks.put_task_group(TaskGroupId(1), group);
    tasks.put_ready_tasks(ReadyTasksId(1), {EventLoopId(1), ProfileMaker::kStart, kMs, 1});
    tasks.put_task_waiter(TaskWaiterId(1), {TaskGroupId(1), TaskStackId(2), 7});
    tasks.put_job_waiter(JobWaiterId(1), {ProcessId(1), FrameId(1), TaskStackId(2), 7});
    Request request;
    request.loop = EventLoopId(1);
    request.latest_begin = request.earliest_end = ProfileMaker::kStart;
    request.latest_end = ProfileMaker::kStart;
    tasks.put_request(RequestId(1), request);
    tasks.put_request_part(RequestPartId(1), {RequestId(1), TaskTimeId(1), false, kMs});
    add_tasks(rows, tasks, all, profile);
    add_recording(all, profile);
  }
  ASSERT_EQ(rows.times.size(), 2u);
  for (size_t i = 0; i < 2; ++i) {
    const EventLoop& loop = rows.loops[rows.times[i].loop.value - 1];
    EXPECT_EQ(loop.type, i == 0 ? "first" : "second");
    EXPECT_EQ(rows.censuses[i].process, loop.process);
    EXPECT_EQ(all.thread(loop.thread).process, loop.process);
    EXPECT_EQ(loop.process.value, i + 1);
    const TaskStack& stack = rows.stacks[rows.times[i].stack.value - 1];
    EXPECT_EQ(all.frame(stack.frame).function, loop.type);
    EXPECT_EQ(all.frame(rows.stacks[stack.parent.value - 1].frame).function, loop.type);
    EXPECT_EQ(rows.times[i].seen, 7u);
    EXPECT_EQ(rows.groups[i].loop, rows.times[i].loop);
    EXPECT_EQ(all.frame(rows.groups[i].frame).function, loop.type);
  }
  EXPECT_EQ(rows.waiters[1], (TaskWaiter{TaskGroupId(2), TaskStackId(4), 7}));
  EXPECT_EQ(rows.job_waiters[1].process, ProcessId(2));
  EXPECT_EQ(all.frame(rows.job_waiters[1].frame).function, "second");
  EXPECT_EQ(rows.job_waiters[1].stack, TaskStackId(4));
  // Like the samples of the second recording, the moments of its tasks follow the end of the first one.
  const Nanoseconds start = all.samples()[1].start;
  EXPECT_EQ(start, ProfileMaker::kStart + kMs);
  EXPECT_EQ(rows.ready[1], (ReadyTasks{EventLoopId(2), start, kMs, 1}));
  Request request;
  request.loop = EventLoopId(2);
  request.latest_begin = request.earliest_end = start;
  request.latest_end = start;
  EXPECT_EQ(rows.requests[1], request) << "the earliest begin is still not known";
  EXPECT_EQ(rows.request_parts[1], (RequestPart{RequestId(2), TaskTimeId(2), false, kMs}));
  EXPECT_EQ(rows.times[1].time, std::numeric_limits<int64_t>::max() - 3 * kMs) << "what a sum holds";
}

}  // namespace
}  // namespace phlox::view
