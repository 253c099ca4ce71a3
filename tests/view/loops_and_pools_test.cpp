#include "phlox/view/loops_and_pools.h"

#include <gtest/gtest.h>

#include <string>

#include "phlox/profile/recorded_words.h"
#include "phlox/view/forks.h"
#include "support/profile_of.h"

namespace phlox::view {

using namespace profile;

namespace {

using test::ProfileMaker;

constexpr Nanoseconds kMs = 1'000'000;
constexpr int16_t kFutex = 202, kEpoll = 232, kNanosleep = 230, kRecv = 45;
const std::string kLib = "/usr/lib/python3.12/";
const std::string kOnce = "main;" + kLib + "asyncio/base_events.py/_run_once";
const std::string kPoll = kOnce + ";" + kLib + "selectors.py/select";
const std::string kCallback = kOnce + ";" + kLib + "asyncio/events.py/_run;";
const std::string kExecutor = kLib + "concurrent/futures/thread.py/_worker";
const std::string kItem = kExecutor + ";" + kLib + "concurrent/futures/thread.py/run;";

class LoopsAndPools : public testing::Test {
 protected:
  LoopsAndPools() { profile.emit_meta("machine", "x86_64"); }
  void blocked(ThreadId thread, const std::string& frames, Nanoseconds wall, int16_t call,
               GilState gil = GilState::none) {
    maker.put(maker.blocked(thread, frames, wall, call, gil));
  }
  std::vector<LoopTime> loops() { return loop_times(profile, *SampleFilter::make_judging(profile, {})); }
  std::vector<BusyPool> pools() { return busy_pools(profile, *SampleFilter::make_judging(profile, {})); }

  Profile profile;
  ProfileMaker maker{profile};
};

TEST_F(LoopsAndPools, the_time_of_a_loop_divides_into_what_its_thread_did) {
  const ThreadId thread = maker.thread("MainThread", 4711);
  maker.add(thread, "main;import", 1000 * kMs);  // before the loop ran
  blocked(thread, kPoll, 500 * kMs, kEpoll);
  maker.add(thread, kCallback + "handle", 200 * kMs);
  blocked(thread, kCallback + "ask;" + kLib + "threading.py/wait", 150 * kMs, kFutex);
  blocked(thread, kCallback + "pause", 50 * kMs, kNanosleep);
  blocked(thread, kCallback + "handle", 70 * kMs, kFutex, GilState::waits);
  Sample queued = maker.sample(thread, kCallback + "handle", 30 * kMs);
  queued.cpu_state = CpuState::runnable;
  maker.put(queued);
  const auto rows = loops();
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(
      loop_sentence(profile, rows[0]),
      "The asyncio event loop of Thread MainThread (4711): idle 50.0 %, running 20.0 %, blocked in calls "
      "20.0 % (longest in ask (app.py:1)), waiting for the GIL 7.0 %, waiting for a CPU 3.0 %");
}

// Between the first and the last time that the loop was seen.
TEST_F(LoopsAndPools, a_wait_that_was_not_read_counts_for_the_loop_if_it_is_known_what_it_was_for) {
  const ThreadId thread = maker.thread("MainThread", 4711);
  const std::string unread = "(a wait whose stack was not read)";
  blocked(thread, unread, 5 * kMs, kEpoll);
  for (int i = 0; i < 100; ++i) {
    blocked(thread, kPoll, 2 * kMs, kEpoll);
    maker.add(thread, kOnce, 1 * kMs);
  }
  blocked(thread, unread, 30 * kMs, kEpoll);
  blocked(thread, unread, 40 * kMs, kRecv);
  maker.add(thread, kCallback + "handle", 100 * kMs);
  const auto rows = loops();
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].wall, 430 * kMs);
  EXPECT_EQ(rows[0].idle, 230 * kMs);
  EXPECT_EQ(rows[0].unknown, 0);
}

// AnyIO's workers and what runs the program's loop are both called run().
TEST_F(LoopsAndPools, the_thread_of_anyios_loop_is_none_of_its_workers) {
  const std::string run = "/site/anyio/_backends/_asyncio.py/run;";
  const ThreadId loop = maker.thread("MainThread", 4711), worker = maker.thread("AnyIO worker thread", 5000);
  blocked(loop, "main;" + run + kCallback + "ask", 1000 * kMs, kRecv);
  EXPECT_TRUE(pools().empty());
  blocked(worker, kLib + "threading.py/_bootstrap_inner;" + run + "ask", 1000 * kMs, kRecv);
  ASSERT_EQ(pools().size(), 1u);
  EXPECT_EQ(pools()[0].workers, 1u);
}

// A child of os.fork() in a callback: the loop on its stack is its parent's.
TEST_F(LoopsAndPools, a_loop_that_a_forked_process_inherited_is_none_of_its_own) {
  const ThreadId parent = maker.thread("MainThread", 4711);
  const ProcessId process = maker.process(4712);
  const ThreadId child = maker.thread("MainThread", 4712, process);
  blocked(parent, kPoll, 500 * kMs, kEpoll);
  maker.add(child, kCallback + "fork_one;work", 300 * kMs);
  blocked(child, kCallback + "fork_one;rest", 100 * kMs, kNanosleep);
  ASSERT_EQ(loops().size(), 2u) << "it may be a program of its own";
  profile.emit_meta(std::string(kForkedFrom) + "2", "1");
  ASSERT_EQ(loops().size(), 1u);
  EXPECT_EQ(loops()[0].thread, parent);
  // It runs one itself, in the callback of its parent's.
  const std::string own = kCallback + "fork_one;run;" + kLib + "asyncio/base_events.py/_run_once";
  blocked(child, own + ";" + kLib + "selectors.py/select", 200 * kMs, kEpoll);
  maker.add(child, own + ";" + kLib + "asyncio/events.py/_run;handle", 50 * kMs);
  ASSERT_EQ(loops().size(), 2u);
  EXPECT_EQ(loops()[1].thread, child);
  EXPECT_EQ(loops()[1].wall, 250 * kMs);
}

// As a page has it, with the parent's frames above the mark.
TEST_F(LoopsAndPools, a_loop_above_the_mark_of_a_fork_is_the_parents) {
  const ThreadId child = maker.thread("MainThread", 4711);
  maker.add(child, kCallback + "fork_one;(forked here);work", 300 * kMs);
  EXPECT_TRUE(loops().empty());
}

// Greenlets have stacks of their own: what a thread does while its hub lives is the loop's time.
TEST_F(LoopsAndPools, greenlets_are_of_their_hub) {
  const ThreadId thread = maker.thread("MainThread", 4711);
  maker.add(thread, "main;import", 1000 * kMs);
  blocked(thread, "/site/gevent/hub.py/run", 300 * kMs, kEpoll);
  maker.add(thread, "/site/gevent/greenlet.py/run;handle", 100 * kMs);
  blocked(thread, "/site/gevent/hub.py/run", 600 * kMs, kEpoll);
  const auto rows = loops();
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].kind, "gevent");
  EXPECT_EQ(rows[0].wall, 1000 * kMs);
  EXPECT_EQ(rows[0].idle, 900 * kMs);
  EXPECT_EQ(rows[0].running, 100 * kMs);
}

TEST_F(LoopsAndPools, a_pool_without_a_worker_to_spare_is_found) {
  maker.thread("MainThread", 4711);
  for (int i = 0; i < 2; ++i) {
    const ThreadId worker = maker.thread("pool_" + std::to_string(i));
    blocked(worker, kItem + "call_upstream;read", 900 * kMs, kRecv);
    maker.add(worker, kItem + "other", 100 * kMs);
  }
  const auto rows = pools();
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].blocked, 1800 * kMs);
  EXPECT_EQ(
      busy_pool_words(profile, rows[0]),
      "2 of 2 threads of ThreadPoolExecutor (pool_...) were at work 100.0 % of the time, 90.0 % of it in "
      "call_upstream (app.py:1)");
}

TEST_F(LoopsAndPools, a_pool_with_one_worker_to_spare_is_none) {
  maker.thread("MainThread", 4711);
  for (int i = 0; i < 2; ++i)
    blocked(maker.thread("pool_" + std::to_string(i)), kItem + "call_upstream", 1000 * kMs, kRecv);
  const ThreadId spare = maker.thread("pool_2");
  blocked(spare, kItem + "call_upstream", 950 * kMs, kRecv);
  blocked(spare, kExecutor, 50 * kMs, kFutex);
  EXPECT_TRUE(pools().empty());
  // Of another one.
  blocked(maker.thread("disk_0"), kItem + "read", 1000 * kMs, kRecv);
  ASSERT_EQ(pools().size(), 1u);
  EXPECT_EQ(pools()[0].name, "disk_");
}

// A framework gives its own function to the pool, which calls the program's.
TEST_F(LoopsAndPools, of_what_a_pool_runs_the_own_function_is_named) {
  maker.thread("MainThread", 4711);
  blocked(maker.thread("pool_0"), kItem + "/v/site-packages/waitress/channel.py/service;slow;read", 900 * kMs,
          kRecv);
  EXPECT_EQ(
      busy_pool_words(profile, pools().at(0)),
      "1 of 1 thread of ThreadPoolExecutor (pool_...) was at work 100.0 % of the time, 100.0 % of it in slow "
      "(app.py:1)");
}

// Counted at 0.25 s and 0.75 s of the second that the pool was busy.
TEST_F(LoopsAndPools, calls_that_wait_for_a_pool_are_counted) {
  maker.thread("MainThread", 4711);
  const ThreadId worker = maker.thread("pool_0");
  blocked(worker, kItem + "call_upstream", 1000 * kMs, kRecv);
  EXPECT_FALSE(pools().at(0).calls_waiting);
  auto count = [&](Nanoseconds at, int64_t calls, std::string kind, std::optional<ThreadId> thread) {
    Event event;
    event.kind = EventKind::calls_waiting;
    event.time = ProfileMaker::kStart + at;
    event.process = ProcessId(1);
    event.thread = thread;
    event.value = calls;
    event.text = std::move(kind);
    profile.emit(event);
  };
  count(250 * kMs, 30, "AnyIO", {});  // another pool's
  count(250 * kMs, 20, "ThreadPoolExecutor", worker);
  count(750 * kMs, 2, "ThreadPoolExecutor", worker);
  const auto rows = pools();
  ASSERT_TRUE(rows.at(0).calls_waiting);
  EXPECT_DOUBLE_EQ(*rows[0].calls_waiting, 14);
  EXPECT_EQ(
      busy_pool_words(profile, rows[0]),
      "1 of 1 thread of ThreadPoolExecutor (pool_...) was at work 100.0 % of the time, 100.0 % of it in "
      "call_upstream (app.py:1); 14 calls waited for a thread on average, at most 20");
  // Two pools whose threads have the same names: which queue belongs to which is not known.
  const ThreadId other = maker.thread("pool_1");
  blocked(other, kItem + "call_upstream", 1000 * kMs, kRecv);
  count(500 * kMs, 7, "ThreadPoolExecutor", other);
  EXPECT_FALSE(pools().at(0).calls_waiting);
}

// Its limiter has calls waiting: no thread is to spare, whatever is known of their stacks.
TEST_F(LoopsAndPools, where_calls_always_wait_a_pool_is_busy_though_its_stacks_were_not_all_read) {
  maker.thread("MainThread", 4711);
  const std::string run = kLib + "threading.py/_bootstrap_inner;/site/anyio/_backends/_asyncio.py/run";
  for (int i = 0; i < 2; ++i) {
    const ThreadId worker = maker.thread("AnyIO worker thread");
    blocked(worker, run + ";ask", 300 * kMs, kRecv);
    blocked(worker, "(a stack that was not read)", 690 * kMs, kFutex);
    blocked(worker, run + ";" + kLib + "queue.py/get", 10 * kMs, kFutex);
  }
  Event event;
  event.kind = EventKind::calls_waiting;
  event.time = ProfileMaker::kStart + 100 * kMs;
  event.process = ProcessId(1);
  event.value = 12;
  event.text = "AnyIO";
  profile.emit(event);
  event.time += 500 * kMs;
  event.value = 3;
  profile.emit(event);
  ASSERT_EQ(pools().size(), 1u);
  EXPECT_EQ(
      busy_pool_words(profile, pools()[0]),
      "calls waited for one of the 2 threads of AnyIO (AnyIO worker thread...) whenever they were counted: "
      "8.0 on average, at most 12; these threads spent the longest time in ask (app.py:1)");
  // Once nothing waited.
  event.time += 200 * kMs;
  event.value = 0;
  profile.emit(event);
  EXPECT_TRUE(pools().empty());
}

TEST_F(LoopsAndPools, calls_that_wait_for_anyios_threads_are_of_the_process) {
  maker.thread("MainThread", 4711);
  const ThreadId worker = maker.thread("AnyIO worker thread");
  blocked(worker, kLib + "threading.py/_bootstrap_inner;/site/anyio/_backends/_asyncio.py/run;ask",
          1000 * kMs, kRecv);
  Event event;
  event.kind = EventKind::calls_waiting;
  event.time = ProfileMaker::kStart;
  event.process = ProcessId(1);
  event.value = 3;
  event.text = "AnyIO";
  profile.emit(event);
  ASSERT_TRUE(pools().at(0).calls_waiting);
  EXPECT_DOUBLE_EQ(*pools()[0].calls_waiting, 3);
}

// While it is not known what a worker did, it may have been idle.
TEST_F(LoopsAndPools, a_pool_whose_stacks_were_not_all_read_is_none) {
  maker.thread("MainThread", 4711);
  const ThreadId worker = maker.thread("pool_0");
  blocked(worker, kItem + "call_upstream", 900 * kMs, kRecv);
  ASSERT_EQ(pools().size(), 1u);
  blocked(worker, "(a stack that was not read)", 100 * kMs, kFutex);
  EXPECT_TRUE(pools().empty());
}

TEST_F(LoopsAndPools, waits_in_work_whose_stacks_were_not_read_are_the_pools) {
  maker.thread("MainThread", 4711);
  const ThreadId worker = maker.thread("pool_0");
  blocked(worker, "(a wait whose stack was not read)", 700 * kMs, kNanosleep);
  blocked(worker, kItem + "call_upstream", 300 * kMs, kRecv);
  ASSERT_EQ(pools().size(), 1u);
  EXPECT_EQ(busy_pool_words(profile, pools()[0]),
            "1 of 1 thread of ThreadPoolExecutor (pool_...) was at work 100.0 % of the time, 30.0 % of it in "
            "call_upstream (app.py:1)");
}

// A worker that began late does not say what the pool did before.
TEST_F(LoopsAndPools, a_pool_that_was_seen_for_a_part_of_the_recording_is_none) {
  maker.add(maker.thread("MainThread", 4711), "main", 1000 * kMs);
  blocked(maker.thread("pool_0"), kItem + "call_upstream", 300 * kMs, kRecv);
  EXPECT_TRUE(pools().empty());
}

TEST_F(LoopsAndPools, workers_that_are_processes_belong_to_their_parent) {
  const ThreadId start = maker.thread("MainThread", 4711);
  maker.add(start, "main", 1000 * kMs);
  for (int pid : {4800, 4801}) {
    const ThreadId worker = maker.thread("MainThread", pid, maker.process(pid));
    maker.add(worker,
              "main;" + kLib + "multiprocessing/process.py/_bootstrap;" + kLib +
                  "multiprocessing/pool.py/worker;crunch",
              1000 * kMs);
  }
  ASSERT_EQ(pools().size(), 1u);
  EXPECT_EQ(busy_pool_words(profile, pools()[0]),
            "2 of 2 processes of multiprocessing.Pool were at work 100.0 % of the time, 100.0 % of it in "
            "crunch (app.py:1)");
}

}  // namespace
}  // namespace phlox::view
