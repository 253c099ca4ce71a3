#include "phlox/view/work.h"

#include <gtest/gtest.h>

#include <string>

#include "support/profile_of.h"

namespace phlox::view {

using namespace profile;

namespace {

using test::ProfileMaker;

constexpr Nanoseconds kMs = 1'000'000;
constexpr int16_t kFutex = 202, kEpoll = 232, kNanosleep = 230, kFdatasync = 75, kPread = 17, kRecv = 45,
                  kSelect = 23, kRead = 0, kWait4 = 61, kAccept = 288, kPoll = 7;

// Standard library: how the stack of a thread begins, and ends.
const std::string kLib = "/usr/lib/python3.12/";
const std::string kThread = kLib + "threading.py/_bootstrap;" + kLib + "threading.py/_bootstrap_inner;";
const std::string kRun = kThread + kLib + "threading.py/run;";
const std::string kChild =
    "<module>;" + kLib + "multiprocessing/process.py/_bootstrap;" + kLib + "multiprocessing/process.py/run;";
const std::string kCondition = ";" + kLib + "threading.py/wait";
const std::string kEvent = kCondition + kCondition;
const std::string kGet = ";" + kLib + "queue.py/get";
const std::string kGetWaits = kGet + kCondition;
const std::string kSelector = ";" + kLib + "selectors.py/select";
const std::string kExecutor = kRun + kLib + "concurrent/futures/thread.py/_worker";
const std::string kItem = kExecutor + ";" + kLib + "concurrent/futures/thread.py/run;";
const std::string kOnce = kLib + "asyncio/runners.py/run;" + kLib + "asyncio/base_events.py/_run_once";
const std::string kCallback = kOnce + ";" + kLib + "asyncio/events.py/_run;";
const std::string kSite = "/v/lib/python3.12/site-packages/";
const std::string kMp = kLib + "multiprocessing/";

class Work : public testing::Test {
 protected:
  Work() { profile.emit_meta("machine", "x86_64"); }
  ThreadId worker_thread() { return maker.thread("worker", next_tid_++); }  // any but the main thread
  ThreadId main() { return maker.thread("MainThread", 4711); }

  void blocked(ThreadId thread, const std::string& frames, Nanoseconds wall, int16_t call,
               GilState gil = GilState::none) {
    maker.put(maker.blocked(thread, frames, wall, call, gil));
  }
  // Milliseconds that are shown.
  int64_t shown(Show show = Show::work) {
    Choices choices;
    choices.show = show;
    const auto tree = build_call_tree(profile, choices);
    return tree ? tree->total / kMs : -1;
  }
  Doing doing(size_t sample) { return WorkRule(profile).of(profile.samples()[sample]); }

  Profile profile;
  ProfileMaker maker{profile};
  int32_t next_tid_ = 5000;
};

// What a blocked thread is at, by its stack and its call alone: nothing else is in the recording, but another
// thread.
struct Case {
  std::string name, frames;
  int16_t call;
  Doing doing;
  bool main = false;
};
void PrintTo(const Case& one, std::ostream* out) {
  *out << one.name;
}
class OfOneStack : public Work, public testing::WithParamInterface<Case> {};
TEST_P(OfOneStack, is_what_a_thread_does) {
  const auto& [name, frames, call, expected, is_main] = GetParam();
  const ThreadId start = main(), worker = worker_thread();
  blocked(is_main ? start : worker, frames, 1000 * kMs, call);
  EXPECT_EQ(doing(0), expected);
}
const auto by_name = [](const auto& info) { return info.param.name; };

INSTANTIATE_TEST_SUITE_P(
    Idle, OfOneStack,
    testing::Values(
        Case{"executor", kExecutor, kFutex, Doing::waiting_for_work},
        Case{"executor_before_3_9", kExecutor + kGetWaits, kFutex, Doing::waiting_for_work},
        Case{"anyio", kThread + kSite + "anyio/_backends/_asyncio.py/run" + kGetWaits, kFutex,
             Doing::waiting_for_work},
        Case{"own_pool", kRun + "worker" + kGetWaits, kFutex, Doing::waiting_for_work},
        Case{"own_thread_class", kThread + "run" + kGetWaits, kFutex, Doing::waiting_for_work},
        Case{"own_pool_with_a_condition", kRun + "worker" + kCondition, kFutex, Doing::waiting_for_work},
        Case{"own_process", kChild + "worker;" + kMp + "queues.py/get;" + kMp + "connection.py/_recv", kRead,
             Doing::waiting_for_work, true},
        Case{"own_loop_of_a_thread", kRun + "serve" + kSelector, kEpoll, Doing::waiting_for_work},
        Case{"pool_results",
             kRun + kMp + "pool.py/_handle_results;" + kMp + "connection.py/recv;" + kMp +
                 "connection.py/_recv_bytes;" + kMp + "connection.py/_recv",
             kRead, Doing::waiting_for_work},
        Case{"thread_pool_results", kRun + kMp + "pool.py/_handle_results", kFutex, Doing::waiting_for_work},
        Case{"pool_tasks", kRun + kMp + "pool.py/_handle_tasks", kFutex, Doing::waiting_for_work},
        Case{"pool_workers",
             kRun + kMp + "pool.py/_handle_workers;" + kMp + "pool.py/_wait_for_updates;" + kMp +
                 "connection.py/wait" + kSelector,
             kPoll, Doing::waiting_for_work},
        Case{"queue_feeder", kRun + kMp + "queues.py/_feed" + kCondition, kFutex, Doing::waiting_for_work},
        Case{"process_pool_manager",
             kThread + kLib + "concurrent/futures/process.py/run;" + kLib +
                 "concurrent/futures/process.py/wait_result_broken_or_wakeup;" + kMp + "connection.py/wait" +
                 kSelector,
             kPoll, Doing::waiting_for_work},
        Case{"process_pool_worker",
             kChild + kLib + "concurrent/futures/process.py/_process_worker;" + kMp + "queues.py/get;" + kMp +
                 "synchronize.py/__enter__",
             kFutex, Doing::waiting_for_work, true},
        Case{"log_listener",
             kRun + kLib + "logging/handlers.py/_monitor;" + kLib + "logging/handlers.py/dequeue" + kGetWaits,
             kFutex, Doing::waiting_for_work},
        Case{"timer", kRun.substr(0, kRun.size() - 1) + kEvent, kFutex, Doing::waiting_for_work},
        Case{"server", "main;" + kLib + "socketserver.py/serve_forever" + kSelector, kPoll,
             Doing::waiting_for_work, true},
        Case{"keep_alive",
             kRun + kLib + "socketserver.py/process_request_thread;" + kLib +
                 "http/server.py/handle_one_request;" + kLib + "socket.py/readinto",
             kRecv, Doing::waiting_for_work},
        Case{"accept", "main;serve;" + kLib + "socket.py/accept", kAccept, Doing::waiting_for_work, true},
        Case{"asyncio", kOnce + kSelector, kEpoll, Doing::waiting_for_work, true},
        // What runs the program's loop has the name of what its workers run.
        Case{"anyio_loop", "main;" + kSite + "anyio/_backends/_asyncio.py/run;" + kOnce + kSelector, kEpoll,
             Doing::waiting_for_work, true},
        Case{"anyio_loop_of_a_thread",
             kRun + kSite + "anyio/_core/_eventloop.py/run;" + kSite + "anyio/_backends/_asyncio.py/run;" +
                 kOnce + kSelector,
             kEpoll, Doing::waiting_for_work},
        Case{"uvloop", "main;" + kLib + "asyncio/runners.py/run", kEpoll, Doing::waiting_for_work, true},
        Case{"trio",
             "main;" + kSite + "trio/_core/_run.py/unrolled_run;" + kSite +
                 "trio/_core/_io_epoll.py/get_events",
             kEpoll, Doing::waiting_for_work, true},
        Case{"trio_thread_cache", kRun + kSite + "trio/_core/_thread_cache.py/_work", kFutex,
             Doing::waiting_for_work},
        Case{"gevent", kSite + "gevent/hub.py/run", kEpoll, Doing::waiting_for_work, true},
        Case{"aiosqlite", kRun + kSite + "aiosqlite/core.py/_connection_worker_thread", kFutex,
             Doing::waiting_for_work},
        Case{"huey", "main;" + kSite + "huey/consumer.py/run;" + kSite + "huey/consumer.py/loop" + kEvent,
             kFutex, Doing::waiting_for_work, true},
        Case{"redis_queue",
             "main;" + kSite + "rq/worker/base.py/dequeue_job_and_maintain_ttl;" + kSite +
                 "redis/connection.py/read_response",
             kRecv, Doing::waiting_for_work, true}),
    by_name);

INSTANTIATE_TEST_SUITE_P(
    AtWork, OfOneStack,
    testing::Values(
        Case{"request", kItem + "call_upstream", kRecv, Doing::waiting},
        Case{"sleep", kItem + "route_sync", kNanosleep, Doing::waiting},
        Case{"queue_in_an_item", kItem + "query;connect" + kGetWaits, kFutex, Doing::waiting},
        Case{"event_in_an_item", kItem + "ask" + kEvent, kFutex, Doing::waiting},
        Case{"future_in_an_item", kItem + "ask;" + kLib + "concurrent/futures/_base.py/result" + kCondition,
             kFutex, Doing::waiting},
        Case{"selector_in_an_item", kItem + "ask" + kSelector, kEpoll, Doing::waiting},
        Case{"anyio_item", kThread + kSite + "anyio/_backends/_asyncio.py/run;route_sync;connect" + kGetWaits,
             kFutex, Doing::waiting},
        Case{"trio_item",
             kRun + kSite + "trio/_core/_thread_cache.py/_work;" + kSite +
                 "trio/_core/_thread_cache.py/_handle_job;ask" + kGetWaits,
             kFutex, Doing::waiting},
        Case{"thread_start_in_a_callback", kCallback + "handle;" + kLib + "threading.py/start" + kEvent,
             kFutex, Doing::waiting, true},
        Case{"thread_start_in_a_server",
             "main;" + kLib + "socketserver.py/serve_forever;" + kLib + "socketserver.py/process_request;" +
                 kLib + "threading.py/start" + kEvent,
             kFutex, Doing::waiting, true},
        Case{"thread_start", "main;" + kLib + "threading.py/start" + kEvent, kFutex, Doing::waiting, true},
        Case{"sleep_in_a_callback", kCallback + "handle", kNanosleep, Doing::waiting, true},
        Case{"selector_in_a_callback", kCallback + "handle;ask" + kSelector, kPoll, Doing::waiting, true},
        Case{"callback_of_uvloop", "main;" + kLib + "asyncio/runners.py/run;handle" + kEvent, kFutex,
             Doing::waiting, true},
        Case{"result_that_does_not_fit", kRun + kMp + "queues.py/_feed;" + kMp + "connection.py/_send", 1,
             Doing::waiting},
        Case{"request_handler", kRun + kLib + "socketserver.py/process_request_thread;handle;ask" + kGetWaits,
             kFutex, Doing::waiting},
        Case{"request_body",
             kRun + kLib + "socketserver.py/process_request_thread;" + kLib +
                 "http/server.py/handle_one_request;do_POST;" + kLib + "socket.py/readinto",
             kRecv, Doing::waiting},
        Case{"full_queue", kRun + "worker;" + kLib + "queue.py/put" + kCondition, kFutex, Doing::waiting},
        Case{"semaphore", kRun + "worker;" + kLib + "threading.py/acquire" + kCondition, kFutex,
             Doing::waiting},
        // A queue in a database: it waits for the disk, and not for what comes.
        Case{"queue_on_disk", kRun + kSite + "huey/consumer.py/loop;" + kSite + "huey/api.py/dequeue;db",
             kFdatasync, Doing::waiting},
        Case{"worker_of_rq_on_disk",
             "main;" + kSite + "rq/worker/base.py/dequeue_job_and_maintain_ttl;database", kPread,
             Doing::waiting, true},
        Case{"lock", kRun + "worker;stock_of", kFutex, Doing::waiting},
        Case{"socket", kRun + "fetch", kRecv, Doing::waiting},
        Case{"script_that_sleeps", "main", kNanosleep, Doing::waiting, true},
        // time.sleep() was select() before Python 3.11.
        Case{"script_that_sleeps_by_select", "main", kSelect, Doing::waiting, true},
        Case{"child_that_is_not_recorded", "main;" + kLib + "subprocess.py/communicate" + kSelector, kPoll,
             Doing::waiting, true}),
    by_name);

INSTANTIATE_TEST_SUITE_P(
    NotKnown, OfOneStack,
    testing::Values(
        Case{"queue_deeper", kRun + "worker;connect" + kGetWaits, kFutex, Doing::waiting_unknown},
        Case{"event_of_a_thread", kRun + "tick" + kEvent, kFutex, Doing::waiting_unknown},
        Case{"pause_of_a_thread", kRun + "tick", kNanosleep, Doing::waiting_unknown},
        // SimpleQueue.get is C, as a lock is.
        Case{"futex_of_a_thread", kRun + "worker", kFutex, Doing::waiting_unknown},
        Case{"selector_of_a_script", "main;ask" + kSelector, kEpoll, Doing::waiting_unknown, true},
        Case{"loop_within_an_item", kItem + "fetch;" + kOnce + kSelector, kEpoll, Doing::waiting_unknown}),
    by_name);

INSTANTIATE_TEST_SUITE_P(
    ForOthers, OfOneStack,
    testing::Values(
        Case{"join", "main;" + kLib + "threading.py/join", kFutex, Doing::waiting_for_others, true},
        Case{"result", "main;" + kLib + "concurrent/futures/_base.py/result" + kCondition, kFutex,
             Doing::waiting_for_others, true},
        Case{"map", "main;map;" + kMp + "pool.py/wait" + kEvent, kFutex, Doing::waiting_for_others, true},
        Case{"queue", "main;loop" + kGetWaits, kFutex, Doing::waiting_for_others, true},
        Case{"event", "main" + kEvent, kFutex, Doing::waiting_for_others, true},
        Case{"joined_queue_of_processes", "main;" + kMp + "queues.py/join;" + kMp + "synchronize.py/wait",
             kFutex, Doing::waiting_for_others, true}),
    by_name);

TEST_F(Work, a_thread_that_wants_a_cpu_or_the_gil_computes_wherever_it_is) {
  const ThreadId worker = worker_thread();
  blocked(worker, kExecutor, 100 * kMs, kFutex, GilState::waits);
  Sample waits = maker.blocked(worker, kExecutor, 100 * kMs, kFutex);
  waits.cpu_state = CpuState::runnable;
  maker.put(waits);
  EXPECT_EQ(doing(0), Doing::computing);
  EXPECT_EQ(doing(1), Doing::computing);
}

// However little they compute: forty threads that wait in what they were given for all of the recording.
TEST_F(Work, threads_that_never_compute_are_at_work_in_what_they_were_given) {
  maker.add(main(), "main;crunch", 1000 * kMs);
  for (int i = 0; i < 40; ++i)
    blocked(worker_thread(), kThread + kSite + "anyio/_backends/_asyncio.py/run;route_sync", 1000 * kMs,
            kNanosleep);
  EXPECT_EQ(shown(), 41'000);
}

// And however much: what they wait for between two items is nothing of the program's.
TEST_F(Work, idle_threads_of_a_pool_are_left_out) {
  const ThreadId start = main();
  for (int i = 0; i < 60; ++i) blocked(worker_thread(), kExecutor, 1000 * kMs, kFutex);
  for (int i = 0; i < 2; ++i) {
    const ThreadId worker = worker_thread();
    maker.add(worker, kItem + "crunch", 900 * kMs);
    blocked(worker, kExecutor, 100 * kMs, kFutex);
  }
  blocked(start, "main;" + kLib + "threading.py/join", 1000 * kMs, kFutex);
  EXPECT_EQ(shown(), 1800);
  EXPECT_EQ(shown(Show::everything), 63'000);
  EXPECT_EQ(shown(Show::computing), 1800);
  EXPECT_EQ(shown(Show::waiting), 61'200);
}

// A pool of the program's own: once a thread's first function was seen fetching, all that it calls is work.
TEST_F(Work, what_the_loop_of_an_own_pool_calls_is_work) {
  const ThreadId busy = worker_thread(), idle = worker_thread();
  blocked(busy, kRun + "worker;job;connect" + kGetWaits, 1000 * kMs, kFutex);
  EXPECT_EQ(doing(0), Doing::waiting_unknown);
  blocked(idle, kRun + "worker" + kGetWaits, 1000 * kMs, kFutex);
  EXPECT_EQ(doing(0), Doing::waiting);
  EXPECT_EQ(doing(1), Doing::waiting_for_work);
}

// The queue of a script is no pool's: its main thread may wait for an answer.
TEST_F(Work, a_script_that_gets_from_a_queue_teaches_nothing) {
  const ThreadId start = main(), worker = worker_thread();
  blocked(start, "serve" + kGetWaits, 1000 * kMs, kFutex);
  blocked(worker, kRun + "serve;connect" + kGetWaits, 1000 * kMs, kFutex);
  EXPECT_EQ(doing(1), Doing::waiting_unknown);
}

// A loop in C that no table knows: its line waits in epoll, and calls functions.
TEST_F(Work, a_line_that_waits_in_epoll_and_calls_functions_is_an_event_loop) {
  const ThreadId start = main();
  blocked(start, "main:7", 100 * kMs, kEpoll);
  EXPECT_EQ(doing(0), Doing::waiting_unknown);
  maker.add(start, "main:7;callback", 100 * kMs);
  blocked(start, "main:7;callback;ask" + kGetWaits, 100 * kMs, kFutex);
  blocked(start, "main:8", 100 * kMs, kEpoll);
  EXPECT_EQ(doing(0), Doing::waiting_for_work);
  EXPECT_EQ(doing(2), Doing::waiting);
  EXPECT_EQ(doing(3), Doing::waiting_unknown);
}

TEST_F(Work, any_selector_that_asyncio_calls_waits_for_events) {
  const ThreadId start = main();
  blocked(start, kOnce + ";select:9" + kSelector, 100 * kMs, kEpoll);
  blocked(start, kOnce + ";select:9", 100 * kMs, kEpoll);
  blocked(start, kOnce + ";select:9;hook", 100 * kMs, kRead);
  blocked(start, kCallback + "select:9", 100 * kMs, kEpoll);
  blocked(start, "select:9", 100 * kMs, kNanosleep);
  EXPECT_EQ(doing(0), Doing::waiting_for_work);
  EXPECT_EQ(doing(1), Doing::waiting_for_work);
  EXPECT_EQ(doing(2), Doing::waiting);
  EXPECT_EQ(doing(3), Doing::waiting);
  EXPECT_NE(doing(4), Doing::waiting_for_work);
}

// A framework's own function between the one that is known to start the loop and the loop.
TEST_F(Work, a_line_beneath_the_start_of_a_loop_is_that_loop_unless_the_start_waits_itself) {
  const ThreadId start = main();
  const std::string run = "main;" + kSite + "uvicorn/server.py/run";
  blocked(start, run + ";serve:5", 100 * kMs, kEpoll);
  maker.add(start, run + ";serve:5;handler", 100 * kMs);
  blocked(start, run + ";serve:5;handler;ask", 100 * kMs, kRecv);
  EXPECT_EQ(doing(0), Doing::waiting_for_work);
  EXPECT_EQ(doing(2), Doing::waiting);
  blocked(start, run, 100 * kMs, kEpoll);
  EXPECT_EQ(doing(0), Doing::waiting);
  EXPECT_EQ(doing(3), Doing::waiting_for_work);
}

TEST_F(Work, a_with_statement_that_polls_is_no_event_loop) {
  const ThreadId start = main();
  blocked(start, "main:7", 100 * kMs, kEpoll);
  maker.add(start, "main:7;__enter__", 10 * kMs);
  maker.add(start, "main:7;__exit__", 10 * kMs);
  EXPECT_EQ(doing(0), Doing::waiting_unknown);
}

// Jobs come by a pipe, and so does what a child answers; a thread that was asked for something reads it
// further down its stack.
TEST_F(Work, reading_from_a_pipe_in_the_function_that_begins_a_thread_may_be_idle) {
  const ThreadId worker = worker_thread();
  profile.emit(WaitTargetId(1), {WaitTargetKind::pipe, "pipe", ""});
  for (const char* frames : {"read_jobs", "read_jobs;answer"}) {
    Sample sample = maker.blocked(worker, kRun + frames, 300 * kMs, kRead);
    sample.wait_target = WaitTargetId(1);
    maker.put(sample);
  }
  EXPECT_EQ(doing(0), Doing::waiting_unknown);
  EXPECT_EQ(doing(1), Doing::waiting);
}

// What a forked child has of its parent's stack is not the child's.
TEST_F(Work, a_child_that_was_forked_within_an_item_waits_for_its_own) {
  const ThreadId child = maker.thread("MainThread", 4800, maker.process(4800));
  blocked(child, kCallback + "handle;" + kMp + "process.py/_bootstrap;worker;" + kMp + "queues.py/get",
          100 * kMs, kRead);
  EXPECT_EQ(doing(0), Doing::waiting_for_work);
}

TEST_F(Work, a_script_without_other_threads_waits_for_none) {
  blocked(main(), "main" + kEvent, 1000 * kMs, kFutex);
  EXPECT_EQ(doing(0), Doing::waiting);
}

// A child that is recorded shows itself what it does; another is shown by the waiting for it.
TEST_F(Work, waiting_for_a_child_is_left_out_if_it_is_recorded) {
  const ThreadId start = main();
  blocked(start, "main;" + kLib + "subprocess.py/_try_wait", 300 * kMs, kWait4);
  Sample named = maker.blocked(start, "main;" + kLib + "subprocess.py/_try_wait", 300 * kMs, kWait4);
  profile.emit(WaitTargetId(1), {WaitTargetKind::process, "ffmpeg", "4801"});
  named.wait_target = WaitTargetId(1);
  maker.put(named);
  EXPECT_EQ(doing(0), Doing::waiting);
  maker.process(4800);
  EXPECT_EQ(doing(0), Doing::waiting_for_others);
  EXPECT_EQ(doing(1), Doing::waiting);
}

// A server that is written by hand.
TEST_F(Work, waiting_for_clients_is_waiting_for_something_to_do) {
  Sample sample = maker.blocked(main(), "main;serve;wait", 300 * kMs, kPoll);
  profile.emit(WaitTargetId(1), {WaitTargetKind::listener, "0.0.0.0:80", ""});
  sample.wait_target = WaitTargetId(1);
  maker.put(sample);
  EXPECT_EQ(doing(0), Doing::waiting_for_work);
}

TEST_F(Work, threads_without_python_wait_for_work) {
  maker.add(main(), "main;dot", 1000 * kMs);
  const ThreadId native = maker.thread("");
  maker.add(native, "", 300 * kMs);
  blocked(native, "", 700 * kMs, kFutex);
  EXPECT_EQ(shown(), 1300);
}

// A marker in place of a stack, and a stack without its middle, hide what a thread was given.
TEST_F(Work, of_a_stack_that_was_not_read_nothing_is_known) {
  const ThreadId worker = worker_thread();
  blocked(worker, "(a stack that was not read)", 100 * kMs, kFutex);
  Sample cut = maker.blocked(worker, "worker" + kGetWaits, 100 * kMs, kFutex);
  cut.quality = Quality::cut;
  maker.put(cut);
  EXPECT_EQ(doing(0), Doing::waiting_unknown);
  EXPECT_EQ(doing(1), Doing::waiting_unknown);
}

// The threads of such a pool wait for work in a lock alone.
TEST_F(Work, without_its_stack_a_pool_thread_that_waits_in_another_call_is_in_its_work) {
  const std::string unread = "(a wait whose stack was not read)";
  const ThreadId worker = worker_thread(), other = worker_thread();
  maker.add(worker, kItem + "call_upstream", 10 * kMs);
  maker.add(other, kRun + "tick", 10 * kMs);
  for (const ThreadId thread : {worker, other}) {
    blocked(thread, unread, 100 * kMs, kNanosleep);
    blocked(thread, unread, 100 * kMs, kFutex);
  }
  EXPECT_EQ(doing(2), Doing::waiting);
  EXPECT_EQ(doing(3), Doing::waiting_unknown);
  EXPECT_EQ(doing(4), Doing::waiting_unknown);
  EXPECT_EQ(doing(5), Doing::waiting_unknown);
}

TEST_F(Work, without_its_stack_a_wait_for_clients_is_still_one) {
  Sample sample = maker.blocked(main(), "(a wait whose stack was not read)", 300 * kMs, kPoll);
  profile.emit(WaitTargetId(1), {WaitTargetKind::listener, "0.0.0.0:80", ""});
  sample.wait_target = WaitTargetId(1);
  maker.put(sample);
  EXPECT_EQ(doing(0), Doing::waiting_for_work);
}

// Of a thread that has waited a hundred times in a call, always for the same reason.
TEST_F(Work, a_wait_that_was_not_read_is_like_all_others_of_its_thread_in_that_call) {
  const std::string unread = "(a wait whose stack was not read)";
  const ThreadId loop = main(), other = worker_thread();
  for (int i = 0; i < 100; ++i) {
    blocked(loop, kOnce + kSelector, 2 * kMs, kEpoll);
    blocked(loop, kCallback + "handler" + kSelector, 2 * kMs, kPoll);
    if (i > 0) blocked(loop, kCallback + "handler", 2 * kMs, kNanosleep);
    blocked(loop, i == 50 ? kCallback + "handler" : kOnce + kSelector, 2 * kMs, kSelect);
  }
  const size_t begin = profile.samples().size();
  for (const int16_t call : {kEpoll, kPoll, kNanosleep, kSelect, kRecv}) blocked(loop, unread, 5 * kMs, call);
  blocked(other, unread, 5 * kMs, kEpoll);
  blocked(loop, unread, 5 * kMs, kEpoll, GilState::unknown);
  EXPECT_EQ(doing(begin), Doing::waiting_for_work);
  EXPECT_EQ(doing(begin + 1), Doing::waiting);
  EXPECT_EQ(doing(begin + 2), Doing::waiting_unknown) << "99 are too few";
  EXPECT_EQ(doing(begin + 3), Doing::waiting_unknown) << "one of them differs";
  EXPECT_EQ(doing(begin + 4), Doing::waiting_unknown) << "no other wait in this call";
  EXPECT_EQ(doing(begin + 5), Doing::waiting_unknown) << "another thread";
  EXPECT_EQ(doing(begin + 6), Doing::waiting_unknown) << "it may have waited for the GIL";
  Choices choices;
  choices.show = Show::work;
  EXPECT_EQ(left_out_words(waiting_for_work(profile, choices)),
            "0.40 s of waiting for something to do, in 1 of 2 threads: 1 in _run_once (base_events.py)");
}

// A long wait has several rows.
TEST_F(Work, one_long_wait_says_nothing_of_another_that_was_not_read) {
  const ThreadId loop = main();
  for (int i = 0; i < 150; ++i) blocked(loop, kOnce + kSelector, 1000 * kMs, kEpoll);
  blocked(loop, "(a wait whose stack was not read)", 5 * kMs, kEpoll);
  EXPECT_EQ(doing(150), Doing::waiting_unknown);
}

// --native reads the C frames of such a wait, and they do not show what is in Python above them.
TEST_F(Work, native_frames_below_a_wait_that_was_not_read_prove_nothing) {
  const ThreadId worker = worker_thread();
  blocked(worker, "(a wait whose stack was not read);@futex_wait", 1000 * kMs, kFutex);
  blocked(worker, "@clone3;@pool_wait", 1000 * kMs, kFutex);
  blocked(worker, "(native callers unknown: no unwind information);@pool_wait", 1000 * kMs, kFutex);
  EXPECT_EQ(doing(0), Doing::waiting_unknown);
  EXPECT_EQ(doing(1), Doing::waiting_for_work);
  EXPECT_EQ(doing(2), Doing::waiting_for_work);
  Choices choices;
  choices.show = Show::work;
  const LeftOut left_out = waiting_for_work(profile, choices);
  EXPECT_EQ(unknown_words(left_out), "1.00 s in 1 of 1 thread: 1 in an unknown place");
  EXPECT_EQ(left_out_words(left_out),
            "2.00 s of waiting for something to do, in 1 of 1 thread: 1 in clone3, 1 in pool_wait");
}

TEST_F(Work, a_wait_for_clients_that_was_not_read_has_an_unknown_place) {
  blocked(main(), "(a wait whose stack was not read)", 1000 * kMs, kAccept);
  Choices choices;
  choices.show = Show::work;
  EXPECT_EQ(left_out_words(waiting_for_work(profile, choices)),
            "1.00 s of waiting for something to do, in 1 of 1 thread: 1 in an unknown place");
}

// What a pool's worker or a loop called may be the function that waits for it, or a work item.
TEST_F(Work, a_function_that_was_not_read_is_not_taken_for_the_one_that_called_it) {
  const std::string hole = ";(a function not read: too many new ones at once)";
  const ThreadId worker = worker_thread();
  blocked(worker, kExecutor + hole, 100 * kMs, kFutex);
  blocked(worker, kExecutor + hole + kCondition, 100 * kMs, kFutex);
  blocked(main(), kOnce + hole + kSelector, 100 * kMs, kEpoll);
  blocked(worker, kItem + "call_upstream" + hole, 100 * kMs, kFutex);
  blocked(worker, kRun + "(12 frames left out);worker" + kGetWaits, 100 * kMs, kFutex);
  EXPECT_EQ(doing(0), Doing::waiting_unknown);
  EXPECT_EQ(doing(1), Doing::waiting_unknown);
  EXPECT_EQ(doing(2), Doing::waiting_unknown);
  EXPECT_EQ(doing(3), Doing::waiting);
  EXPECT_EQ(doing(4), Doing::waiting_unknown);
}

// Above the mark of a fork is what the parent did.
TEST_F(Work, what_a_forked_process_inherited_says_nothing_of_its_work) {
  const ThreadId start = main();
  blocked(start,
          kCallback + "fork_one;(forked here);child;" + kLib + "asyncio/base_events.py/_run_once" + kSelector,
          100 * kMs, kEpoll);
  EXPECT_EQ(doing(0), Doing::waiting_for_work);
}

TEST_F(Work, what_is_left_out_is_said_with_its_places) {
  const ThreadId start = main();
  maker.add(start, "main;crunch", 500 * kMs);
  blocked(start, "main;" + kLib + "threading.py/join", 500 * kMs, kFutex);
  for (int i = 0; i < 3; ++i) blocked(worker_thread(), kRun + "worker" + kGetWaits, 1000 * kMs, kFutex);
  blocked(worker_thread(), kRun + "tick", 1000 * kMs, kNanosleep);
  Choices choices;
  choices.show = Show::work;
  const LeftOut left_out = waiting_for_work(profile, choices);
  EXPECT_EQ(
      left_out_words(left_out),
      "3.00 s of waiting for something to do, in 3 of 5 threads: 3 in worker (app.py); 0.50 s of waiting "
      "for other threads or processes, which are recorded, too, in 1 of 5 threads: 1 in main (app.py)");
  EXPECT_EQ(unknown_words(left_out), "1.00 s in 1 of 5 threads: 1 in tick (app.py)");
  choices.show = Show::everything;
  EXPECT_EQ(left_out_words(waiting_for_work(profile, choices)), "");
  LeftOut brief = left_out;
  brief.for_work.wall = brief.for_others.wall = brief.unknown.wall = kSecond / 1000;
  EXPECT_EQ(left_out_words(brief) + unknown_words(brief), "");
}

TEST_F(Work, a_whole_tree_has_the_parts_of_every_choice) {
  const ThreadId start = main();
  maker.add(start, "main;crunch", 1000 * kMs);
  blocked(start, "main;read", 500 * kMs, kRecv);
  blocked(worker_thread(), kExecutor, 2000 * kMs, kFutex);
  Choices choices;
  choices.show = Show::work;
  const CallTree tree = *build_whole_call_tree(profile, choices);
  EXPECT_EQ(tree.total, 1500 * kMs);
  ASSERT_EQ(tree.parts.size(), tree.nodes.size());
  int64_t sums[kDoings] = {};
  for (const auto& part : tree.parts) {
    for (size_t doing = 0; doing < kDoings; ++doing) sums[doing] += part[doing].self;
  }
  EXPECT_EQ(sums[0], 1000 * kMs);
  EXPECT_EQ(sums[1], 500 * kMs);
  EXPECT_EQ(sums[2], 2000 * kMs);
  EXPECT_EQ(tree.parts[0][2].samples, 1u);
}

}  // namespace
}  // namespace phlox::view
