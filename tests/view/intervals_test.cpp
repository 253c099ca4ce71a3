#include "phlox/view/intervals.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <tuple>

#include "phlox/exporters/recording_picture.h"
#include "phlox/view/endpoints.h"
#include "phlox/view/part.h"
#include "phlox/view/quality.h"
#include "phlox/view/resource.h"
#include "phlox/view/trace_parts.h"
#include "support/profile_of.h"

namespace phlox::view {

using namespace profile;

namespace {

constexpr Nanoseconds kMillisecond = 1'000'000;

struct Sums {
  Nanoseconds wall = 0, cpu = 0;
  int64_t samples = 0;
  friend bool operator==(const Sums&, const Sums&) = default;
};

Sums sums_of(const Profile& profile) {
  Sums sums;
  for (const Sample& sample : profile.samples()) {
    sums.wall += sample.wall;
    sums.cpu += sample.cpu;
    sums.samples += sample.samples;
  }
  return sums;
}

// Root first: "main;load".
std::string stack_text(const Profile& profile, StackId id) {
  std::string text;
  for (; id; id = profile.stack(id).parent)
    text = profile.frame(profile.stack(id).frame).function + (text.empty() ? "" : ";") + text;
  return text;
}

class IntervalsTest : public testing::Test {
 protected:
  Profile cut(Nanoseconds at) {
    const Intervals::Moment begin = begin_;
    begin_ = {at, at + kUnix};
    return intervals.cut(begin, begin_);
  }
  void grow(SampleId id, Sample& sample, Nanoseconds more) {
    sample.wall += more;
    sample.cpu += more / 2;
    ++sample.samples;
    intervals.emit(id, sample);
  }

  static constexpr int64_t kUnix = 1'000'000 * kSecond;
  Intervals intervals;
  test::ProfileMaker make{intervals};
  ThreadId main = make.thread("MainThread", 11);
  Intervals::Moment begin_ = {0, kUnix};
};

TEST_F(IntervalsTest, a_function_comes_with_what_was_inlined_into_it) {
  intervals.emit(ModuleId(1), {"/lib/libfoo.so", "", 0});
  Sample sample = make.sample(main, "main;outer", kMillisecond);
  sample.samples = 1;
  // Named later, as LiveNames does.
  const FrameId outer(2), middle(3), inner(4);
  for (const auto& [id, into, name] : std::vector<std::tuple<FrameId, FrameId, std::string>>{
           {outer, {}, "outer"}, {middle, outer, "middle"}, {inner, middle, "inner"}}) {
    Frame frame;
    frame.kind = FrameKind::native;
    frame.function = name;
    frame.module = ModuleId(1);
    if (into) frame.inlined_in = into;
    intervals.emit(id, frame);
  }
  intervals.emit(SampleId(1), sample);
  const Profile part = cut(kSecond);
  ASSERT_EQ(part.frames().size(), 4u);
  for (uint32_t i = 3; i <= 4; ++i) EXPECT_EQ(part.frame(FrameId(i)).inlined_in, FrameId(i - 1)) << i;
  EXPECT_EQ(part.frame(FrameId(4)).function, "inner");
}

TEST_F(IntervalsTest, a_row_that_grows_over_a_cut_counts_once) {
  Sample sample = make.sample(main, "main;load", 100 * kMillisecond);
  sample.cpu = 0;
  intervals.emit(SampleId(1), sample);
  grow(SampleId(1), sample, 50 * kMillisecond);
  EXPECT_EQ(sums_of(cut(kSecond)), (Sums{150 * kMillisecond, 25 * kMillisecond, 2}));
  grow(SampleId(1), sample, 70 * kMillisecond);
  EXPECT_EQ(sums_of(cut(2 * kSecond)), (Sums{70 * kMillisecond, 35 * kMillisecond, 1}));
  EXPECT_EQ(sums_of(cut(3 * kSecond)), Sums());
  // Also long after.
  grow(SampleId(1), sample, 1);
  EXPECT_EQ(sums_of(cut(4 * kSecond)), (Sums{1, 0, 1}));
  EXPECT_EQ(intervals.samples(), 4U);
}

// "load ab 30": function, first byte of the trace or -, wall time; in the order of the samples.
std::vector<std::string> traced_parts(const Profile& part) {
  std::vector<std::string> texts;
  const TraceParts traces(part);
  for (const Sample& sample : part.samples()) {
    traces.each_part(sample, [&](const Sample& piece, uint32_t index) {
      const std::string trace =
          index == TraceParts::kNone ? "-" : std::to_string(part.trace_times()[index].ids.trace[0]);
      const size_t of_stack = stack_text(part, piece.stack).rfind(';') + 1;
      texts.push_back(stack_text(part, piece.stack).substr(of_stack) + " " + trace + " " +
                      std::to_string(piece.wall));
    });
  }
  std::sort(texts.begin(), texts.end());
  return texts;
}

TraceTime traced(ThreadId thread, uint8_t trace, Nanoseconds start, Nanoseconds end) {
  TraceTime time{thread, {}, start, end};
  time.ids.trace.fill(trace);
  return time;
}

TEST_F(IntervalsTest, what_a_thread_did_for_a_span_is_a_sum_of_its_own) {
  const Nanoseconds start = test::ProfileMaker::kStart;
  const ThreadId other = make.thread("worker", 12);
  Sample load = make.sample(main, "main;load", 100);
  intervals.emit(SampleId(1), load);
  intervals.emit(TraceTimeId(1), traced(main, 7, start + 30, start + 70));
  Sample idle = make.sample(other, "main;idle", 60);
  intervals.emit(SampleId(2), idle);
  ASSERT_TRUE(intervals.commit());
  intervals.emit(TraceTimeId(1), traced(main, 7, start + 30, start + 150));
  intervals.emit(TraceTimeId(2), traced(main, 8, start + 150, start + 180));
  grow(SampleId(1), load, 100);
  Profile part = cut(kSecond);
  EXPECT_EQ(sums_of(part).wall, 260);
  // From 30 to 70, as known at the first commit, and from 100 to 150.
  EXPECT_EQ(traced_parts(part),
            (std::vector<std::string>{"idle - 60", "load - 80", "load 7 90", "load 8 30"}));
  // The last time goes on in the next interval.
  intervals.emit(TraceTimeId(2), traced(main, 8, start + 150, start + 230));
  grow(SampleId(1), load, 50);
  EXPECT_EQ(traced_parts(cut(2 * kSecond)), (std::vector<std::string>{"load - 20", "load 8 30"}));
  grow(SampleId(1), load, 50);
  part = cut(3 * kSecond);
  EXPECT_EQ(traced_parts(part), (std::vector<std::string>{"load - 50"}));
  EXPECT_TRUE(part.trace_times().empty());
}

TEST_F(IntervalsTest, the_next_row_of_a_thread_counts_from_its_own_beginning) {
  Sample first = make.sample(main, "main", 100);
  first.cpu = 40;
  intervals.emit(SampleId(1), first);
  cut(kSecond);
  Sample second = make.sample(main, "main", 30);
  second.cpu = 10;
  intervals.emit(SampleId(2), second);
  EXPECT_EQ(sums_of(cut(2 * kSecond)), (Sums{30, 10, 1}));
}

TEST_F(IntervalsTest, an_interval_has_only_the_rows_that_it_needs) {
  const ThreadId other = make.thread("worker", 12, make.process(200));
  intervals.emit_meta("resource.2", "service.name=shop");
  intervals.emit_meta("host", "h");
  intervals.emit_meta("descendant.7", "x");
  Sample sample = make.sample(main, "main;load", 10);
  intervals.emit(SampleId(1), sample);
  const Profile first = cut(kSecond);
  ASSERT_EQ(first.processes().size(), 1U);
  EXPECT_EQ(first.meta().count("resource.1"), 0U);
  EXPECT_EQ(first.meta().count("descendant.7"), 0U);

  sample = make.sample(other, "run;step", 20);
  intervals.emit(SampleId(2), sample);
  const Profile second = cut(2 * kSecond);
  ASSERT_EQ(second.processes().size(), 1U);
  ASSERT_EQ(second.threads().size(), 1U);
  EXPECT_EQ(second.processes()[0].pid, 200);
  EXPECT_EQ(second.threads()[0].name, "worker");
  EXPECT_EQ(second.threads()[0].process, ProcessId(1));
  EXPECT_EQ(second.frames().size(), 2U);
  EXPECT_EQ(stack_text(second, second.samples()[0].stack), "run;step");
  EXPECT_EQ(second.meta().find("resource.1")->second, "service.name=shop");
  EXPECT_EQ(second.meta().find("host")->second, "h");
}

TEST_F(IntervalsTest, an_interval_says_when_it_was_and_how_long) {
  intervals.emit(SampleId(1), make.sample(main, "main", 10));
  cut(3 * kSecond);
  intervals.emit(SampleId(2), make.sample(main, "main", 10));
  const Profile second = cut(5 * kSecond);
  EXPECT_EQ(exporters::recording_start_time(second), kUnix + 3 * kSecond);
  EXPECT_EQ(summarize_quality(second).elapsed, 2 * kSecond);
}

TEST_F(IntervalsTest, states_stay_apart_and_equal_ones_become_one) {
  Sample waits = make.sample(main, "main", 5);
  waits.cpu_state = CpuState::blocked;
  waits.gil_state = GilState::waits;
  Sample runs = make.sample(main, "main", 7);
  runs.cpu_state = CpuState::running;
  intervals.emit(SampleId(1), waits);
  intervals.emit(SampleId(2), runs);
  intervals.emit(SampleId(3), waits);
  const Profile profile = cut(kSecond);
  ASSERT_EQ(profile.samples().size(), 2U);
  EXPECT_EQ(profile.samples()[0].wall, 7);
  EXPECT_EQ(profile.samples()[1].wall, 10);
  EXPECT_EQ(profile.samples()[1].gil_state, GilState::waits);
}

// Root first, and the time of await time: "handle;acquire;(awaits a lock (Lock)) 5".
std::vector<std::string> await_lines(const Profile& profile) {
  std::vector<std::string> lines;
  for (const Sample& sample : profile.samples_of_others())
    lines.push_back(stack_text(profile, sample.stack) + " " + std::to_string(sample.wall));
  return lines;
}
using Lines = std::vector<std::string>;

TEST_F(IntervalsTest, await_time_is_what_rows_grew_by_since_the_last_cut) {
  TaskSink& tasks = intervals.tasks();
  tasks.put_event_loop(EventLoopId(1), {ProcessId(1), main, "asyncio"});
  tasks.put_task_stack(TaskStackId(1), {{}, make.frame("handle:12")});
  tasks.put_task_stack(TaskStackId(2), {TaskStackId(1), make.frame("acquire:50")});
  TaskTime lock{EventLoopId(1), TaskStackId(2), TaskState::waiting, "lock", "Lock", 100, 4};
  TaskTime ready{EventLoopId(1), TaskStackId(1), TaskState::ready, "", "", 7, 1};
  intervals.emit(SampleId(1), make.sample(main, "main", 10));
  tasks.put_task_time(TaskTimeId(1), lock);
  lock.time = 120;
  tasks.put_task_time(TaskTimeId(1), lock);
  tasks.put_task_time(TaskTimeId(2), ready);
  const Profile first = cut(kSecond);
  EXPECT_EQ(await_lines(first), Lines{"handle;acquire;(awaits a lock (Lock)) 120"});
  EXPECT_EQ(first.samples_of_others()[0].samples, 4U);
  EXPECT_EQ(sums_of(first).wall, 10) << "what is shown are the threads";
  // Nothing of it grew.
  intervals.emit(SampleId(2), make.sample(main, "main", 10));
  const Profile second = cut(2 * kSecond);
  EXPECT_EQ(await_lines(second), Lines());
  EXPECT_EQ(second.frames().size(), 1U);
  // Without a sample of a thread.
  lock.time = 125;
  lock.seen = 5;
  tasks.put_task_time(TaskTimeId(1), lock);
  const Profile third = cut(3 * kSecond);
  EXPECT_EQ(await_lines(third), Lines{"handle;acquire;(awaits a lock (Lock)) 5"});
  EXPECT_EQ(third.samples_of_others()[0].samples, 1U);
  EXPECT_TRUE(third.samples().empty());
  EXPECT_EQ(third.thread(third.samples_of_others()[0].thread).name, "MainThread");
}

const std::string kSite = "/venv/lib/python3.12/site-packages/";

std::string endpoint_of(const Profile& profile) {
  const Endpoints endpoints(profile);
  const uint32_t number = endpoints.of(profile.samples().at(0));
  return number == Endpoints::kNone ? "none" : profile.frame(endpoints[number].frame).function;
}

TEST_F(IntervalsTest, what_waited_in_earlier_intervals_shows_whose_a_job_is) {
  TaskSink& tasks = intervals.tasks();
  const std::string pool =
      "start;/usr/lib/python3.12/concurrent/futures/thread.py/_worker;"
      "/usr/lib/python3.12/concurrent/futures/thread.py/_WorkItem.run;";
  uint32_t stack = 0;
  for (const std::string& frame :
       {std::string("run_asgi"), kSite + "fastapi/routing.py/run_endpoint_function",
        std::string("upload:12")}) {
    tasks.put_task_stack(TaskStackId(stack + 1), {TaskStackId(stack), make.frame(frame)});
    ++stack;
  }
  tasks.put_job_waiter(JobWaiterId(1), {ProcessId(1), make.frame("resize"), TaskStackId(stack), 4});
  intervals.emit(SampleId(1), make.sample(main, pool + "resize:40", 10));
  EXPECT_EQ(endpoint_of(cut(kSecond)), "none") << "too few";
  tasks.put_job_waiter(JobWaiterId(1), {ProcessId(1), make.frame("resize"), TaskStackId(stack), 9});
  EXPECT_TRUE(cut(2 * kSecond).frames().empty()) << "without samples";
  intervals.emit(SampleId(2), make.sample(main, pool + "resize:40", 10));
  EXPECT_EQ(endpoint_of(cut(3 * kSecond)), "upload");
}

TEST_F(IntervalsTest, what_is_no_handler_by_an_earlier_interval_stays_none) {
  const std::string thread = "main;" + kSite + "anyio/_backends/_asyncio.py/WorkerThread.run;";
  const auto next = [&](SampleId id, ThreadId of, const std::string& frames) {
    intervals.emit(id, make.sample(of, frames, 10));
    return endpoint_of(cut(id.value * kSecond));
  };
  EXPECT_EQ(next(SampleId(1), main, thread + "index"), "none") << "no Starlette was seen";
  EXPECT_EQ(next(SampleId(2), main, "main;" + kSite + "starlette/routing.py/request_response.app;about"),
            "about");
  EXPECT_EQ(next(SampleId(3), main, thread + "index"), "index");
  const ThreadId other = make.thread("worker", 12, make.process(200));
  EXPECT_EQ(next(SampleId(4), other, thread + "index"), "none") << "another process";
  EXPECT_EQ(next(SampleId(5), main, thread + kSite + "fastapi/telemetry/_api.py/_run_sync_endpoint;read"),
            "read");
  EXPECT_EQ(next(SampleId(6), main, thread + "index"), "none") << "FastAPI marks its handlers";
}

TEST_F(IntervalsTest, await_time_stays_with_its_process) {
  const ThreadId other = make.thread("worker", 12, make.process(200));
  TaskSink& tasks = intervals.tasks();
  tasks.put_task_stack(TaskStackId(1), {{}, make.frame("handle:12")});
  tasks.put_event_loop(EventLoopId(1), {ProcessId(1), main, "asyncio"});
  tasks.put_event_loop(EventLoopId(2), {ProcessId(2), other, "asyncio"});
  tasks.put_event_loop(EventLoopId(3), {ProcessId(2), {}, "Loop"});
  for (uint32_t loop = 1; loop <= 3; ++loop)
    tasks.put_task_time(TaskTimeId(loop),
                        {EventLoopId(loop), TaskStackId(1), TaskState::waiting, "sleep", "", 10 + loop, 1});
  intervals.emit(SampleId(1), make.sample(main, "main", 10));
  const auto parts = by_process(cut(kSecond));
  ASSERT_EQ(parts.size(), 2U);
  EXPECT_EQ(sums_of(parts[0]).wall, 10);
  EXPECT_EQ(await_lines(parts[0]), Lines{"handle;(awaits the end of sleep()) 11"});
  EXPECT_EQ(sums_of(parts[1]).wall, 0);
  EXPECT_EQ(await_lines(parts[1]),
            (Lines{"handle;(awaits the end of sleep()) 12", "handle;(awaits the end of sleep()) 13"}));
  EXPECT_EQ(parts[1].processes()[0].pid, 200);
}

TEST_F(IntervalsTest, parts_by_process_add_up) {
  const ThreadId other = make.thread("worker", 12, make.process(200));
  intervals.emit(SampleId(1), make.sample(main, "main;load", 10));
  intervals.emit(SampleId(2), make.sample(other, "run", 20));
  intervals.emit(SampleId(3), make.sample(main, "main", 3));
  const auto parts = by_process(cut(kSecond));
  ASSERT_EQ(parts.size(), 2U);
  EXPECT_EQ(sums_of(parts[0]).wall, 13);
  EXPECT_EQ(sums_of(parts[1]).wall, 20);
  EXPECT_EQ(parts[1].processes()[0].pid, 200);
  EXPECT_EQ(parts[1].frames().size(), 1U);
}

}  // namespace
}  // namespace phlox::view
