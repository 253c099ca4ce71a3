#include "phlox/profile/work.h"

#include <gtest/gtest.h>

#include <string>

#include "support/profile_of.h"

namespace phlox::profile {
namespace {

using test::ProfileMaker;

constexpr Nanoseconds kMs = 1'000'000;
constexpr int16_t kFutex = 202, kEpoll = 232, kNanosleep = 230, kRecv = 45, kSelect = 23, kRead = 0,
                  kWait4 = 61;
constexpr const char* kPool = "/usr/lib/python3.12/concurrent/futures/thread.py";

class Work : public testing::Test {
 protected:
  Work() { profile.put_meta("machine", "x86_64"); }
  ThreadId worker_thread() { return maker.thread("worker", next_tid_++); }  // any but the main thread
  ThreadId main() { return maker.thread("MainThread", 4711); }

  void blocked(ThreadId thread, const std::string& frames, Nanoseconds wall, int16_t call,
               GilState gil = GilState::none) {
    maker.put(maker.blocked(thread, frames, wall, call, gil));
  }
  // Milliseconds that are shown.
  int64_t shown(Show show = Show::work, const ThreadNames& known = {}) {
    Choices choices;
    choices.show = show;
    choices.known = known;
    const auto tree = build_call_tree(profile, choices);
    return tree ? tree->total / kMs : -1;
  }

  Profile profile;
  ProfileMaker maker{profile};
  int32_t next_tid_ = 5000;
};

TEST_F(Work, idle_threads_of_a_pool_do_not_count) {
  const ThreadId start = main();
  for (int i = 0; i < 60; ++i)
    blocked(maker.thread("idle"), std::string("run;") + kPool + "/_worker", 1000 * kMs, kFutex);
  for (int i = 0; i < 2; ++i) maker.add(maker.thread("busy"), "run;crunch", 1000 * kMs);
  blocked(start, "main;/usr/lib/python3.12/threading.py/join", 1000 * kMs, kFutex);
  EXPECT_EQ(shown(), 2000);
  EXPECT_EQ(shown(Show::everything), 63'000);
  EXPECT_EQ(shown(Show::computing), 2000);
  EXPECT_EQ(shown(Show::waiting), 61'000);
}

// Each of them does a little: what it does counts, its waiting between two jobs does not.
TEST_F(Work, waiting_between_two_jobs_does_not_count_but_waiting_within_one_does) {
  const ThreadId worker = worker_thread();
  for (int i = 0; i < 100; ++i) {
    maker.add(worker, "run;serve;job;parse", 10 * kMs);
    blocked(worker, "run;serve;job;fetch", 20 * kMs, kRecv);
    blocked(worker, "run;serve;/usr/lib/python3.12/queue.py/get;/usr/lib/python3.12/threading.py/wait",
            70 * kMs, kFutex);
  }
  EXPECT_EQ(shown(), 3000);
}

// A main thread that imports and then joins its threads: what it waits for is in the picture already.
TEST_F(Work, joining_threads_that_compute_does_not_count) {
  const ThreadId start = main();
  const std::string join = "main;/usr/lib/python3.12/threading.py/join";
  maker.add(start, "main;import", 40 * kMs);
  for (const char* inner : {"", ";/usr/lib/python3.12/threading.py/_wait_for_tstate_lock"})
    blocked(start, join + inner, 980 * kMs, kFutex);
  maker.add(worker_thread(), "run;crunch", 2000 * kMs);
  EXPECT_EQ(shown(), 2040);
}

// Threads that wait for others' machines: then the joining is what there is to see.
TEST_F(Work, joining_threads_that_compute_little_counts) {
  const ThreadId start = main();
  maker.add(start, "main;import", 40 * kMs);
  blocked(start, "main;/usr/lib/python3.12/threading.py/join", 1960 * kMs, kFutex);
  const ThreadId worker = worker_thread();
  maker.add(worker, "run;fetch", 20 * kMs);
  blocked(worker, "run;fetch;read", 1980 * kMs, kRecv);
  EXPECT_EQ(shown(), 4000);
}

// What a pool's workers do is in the picture, whether they are threads or processes.
TEST_F(Work, waiting_for_what_a_pool_was_given_does_not_count) {
  const ThreadId start = main();
  maker.add(start, "main;prepare", 400 * kMs);
  const std::string wait = ";/usr/lib/python3.12/threading.py/wait";
  blocked(start, "main;map;/usr/lib/python3.12/multiprocessing/pool.py/wait" + wait + wait, 300 * kMs,
          kFutex);
  blocked(start, "main;/usr/lib/python3.12/concurrent/futures/_base.py/result" + wait, 300 * kMs, kFutex);
  EXPECT_EQ(shown(), 1000);
  maker.add(maker.thread("MainThread", 4800, maker.process(4800)), "worker;crunch", 1000 * kMs);
  EXPECT_EQ(shown(), 1400);
}

// A main thread that does little itself waits for the others by any notification: a queue, an event; the
// master of a server for a signal. What it imported made it compute more than who only waits.
class MainThreadWaits : public Work, public testing::WithParamInterface<const char*> {};
TEST_P(MainThreadWaits, for_a_notification_while_others_compute_does_not_count) {
  const ThreadId start = main();
  maker.add(start, "main;import", 50 * kMs);
  blocked(start, GetParam(), 950 * kMs, kFutex);
  EXPECT_EQ(shown(), 1000);
  maker.add(maker.thread("MainThread", 4800, maker.process(4800)), "worker;crunch", 1000 * kMs);
  EXPECT_EQ(shown(), 1050);
}
INSTANTIATE_TEST_SUITE_P(
    Work, MainThreadWaits,
    testing::Values("main;loop;/usr/lib/python3.12/queue.py/get;/usr/lib/python3.12/threading.py/wait",
                    "main;run;/v/gunicorn/arbiter.py/wait_for_signals"));

// gunicorn's gthread under load: what its main thread wants the GIL for is little.
TEST_F(Work, a_thread_that_hands_out_work_and_waits_for_the_gil_does_not_count) {
  const ThreadId start = main();
  maker.add(start, "main;import", 20 * kMs);
  blocked(start, "main;run;/usr/lib/python3.12/selectors.py/select", 880 * kMs, kEpoll);
  blocked(start, "main;run;enqueue", 100 * kMs, kFutex, GilState::waits);
  maker.add(worker_thread(), "worker;request", 500 * kMs);
  EXPECT_EQ(shown(), 620);
}

// Django's parent process, a script that runs another; a shell or a Python that nobody looked at lies
// between.
TEST_F(Work, waiting_for_a_child_that_is_recorded_does_not_count) {
  const ThreadId start = main();
  maker.add(start, "main;import", 400 * kMs);
  blocked(start, "main;/usr/lib/python3.12/subprocess.py/_try_wait", 300 * kMs, kWait4);
  blocked(start, "main;system", 300 * kMs, kWait4);
  const ProcessId between = maker.process(4799);
  EXPECT_EQ(shown(), 1000);
  const ThreadId child = maker.thread("MainThread", 4800, maker.process(4800, between));
  blocked(child, "main;sleep", 990 * kMs, kNanosleep);
  EXPECT_EQ(shown(), 1000);
  maker.add(child, "main;parse", 10 * kMs);
  EXPECT_EQ(shown(), 1400);
}

// Its reloader looks every second for files that changed.
TEST_F(Work, a_thread_that_sleeps_between_two_looks_at_something_does_not_count) {
  const ThreadId start = main();
  for (int i = 0; i < 10; ++i) {
    maker.add(start, "main;tick;stat", 5 * kMs);
    blocked(start, "main;tick", 995 * kMs, kNanosleep);
  }
  EXPECT_EQ(shown(), 10'000);
  maker.add(maker.thread("server"), "run;request", 300 * kMs);
  EXPECT_EQ(shown(), 350);
}

// Workers of a pool that sleep between two tries are what the program does.
TEST_F(Work, threads_that_sleep_where_others_do_count) {
  for (int i = 0; i < 8; ++i) {
    const ThreadId worker = worker_thread();
    maker.add(worker, "run;try", (10 + i) * kMs);
    blocked(worker, "run;retry", 900 * kMs, kNanosleep);
  }
  EXPECT_EQ(shown(), 8 * 910 + 28);
}

TEST_F(Work, helpers_of_multiprocessing_and_workers_that_wait_for_commands_do_not_count) {
  maker.add(main(), "main;crunch", 1000 * kMs);
  for (const char* frames : {"<module>;/usr/lib/python3.12/multiprocessing/resource_tracker.py/main",
                             "<module>;/site-packages/execnet/gateway_base.py/read"}) {
    const ThreadId thread = maker.thread("MainThread", next_tid_, maker.process(next_tid_));
    ++next_tid_;
    maker.add(thread, "<module>;import", 50 * kMs);
    blocked(thread, frames, 950 * kMs, kRead);
  }
  EXPECT_EQ(shown(), 1100);
}

// They wait in their main threads: one of them for what comes, the others for the lock that it holds.
TEST_F(Work, workers_of_a_pool_of_processes_that_wait_for_tasks_do_not_count) {
  const std::string library = "/usr/lib/python3.12/multiprocessing/";
  const std::string worker = "<module>;" + library + "pool.py/worker;";
  const std::string get = library + "queues.py/get;";
  for (const std::string& wait :
       {get + library + "connection.py/recv_bytes;" + library + "connection.py/_recv",
        get + library + "synchronize.py/__enter__"}) {
    const ThreadId thread = maker.thread("MainThread", next_tid_, maker.process(next_tid_));
    ++next_tid_;
    maker.add(thread, "<module>;import", 50 * kMs);
    maker.add(thread, worker + "task", 450 * kMs);
    blocked(thread, worker + wait, 500 * kMs, kRead);
    // A lock of the program's own, and a queue that the task asks.
    blocked(thread, worker + "task;" + library + "synchronize.py/__enter__", 100 * kMs, kFutex);
    blocked(thread, worker + "task;" + get + library + "connection.py/_recv", 100 * kMs, kRead);
  }
  EXPECT_EQ(shown(), 2 * 700);
}

// gunicorn's threaded worker: its main thread asks for work in one function and does its housekeeping in
// another.
TEST_F(Work, a_thread_that_hands_out_work_to_others_waits_for_something_to_do) {
  const ThreadId start = main();
  maker.add(start, "main;run;notify", 40 * kMs);
  maker.add(start, "main;run;dispatch;submit", 20 * kMs);
  blocked(start, "main;run;dispatch;/usr/lib/python3.12/selectors.py/select", 1940 * kMs, kEpoll);
  const ThreadId worker = worker_thread();
  maker.add(worker, "run;serve;request", 200 * kMs);
  blocked(worker, "run;serve;request;fetch", 1800 * kMs, kRecv);
  EXPECT_EQ(shown(), 2060);
}

// The same waiting of a program with one thread, beneath one function of several: it waits for an answer.
TEST_F(Work, waiting_for_events_within_what_a_thread_does_counts) {
  const ThreadId start = main();
  maker.add(start, "main;run;notify", 40 * kMs);
  blocked(start, "main;run;ask;/usr/lib/python3.12/selectors.py/select", 1960 * kMs, kEpoll);
  EXPECT_EQ(shown(), 2000);
}

// Waiting for a connection of a pool is a part of the job: the same queue, but asked from within it.
TEST_F(Work, a_queue_that_is_asked_within_a_job_counts) {
  const ThreadId worker = worker_thread();
  for (int i = 0; i < 100; ++i) {
    maker.add(worker, "run;serve;job;parse", 10 * kMs);
    blocked(worker, "run;serve;job;connect;/usr/lib/python3.12/queue.py/get", 90 * kMs, kFutex);
  }
  EXPECT_EQ(shown(), 10'000);
}

TEST_F(Work, an_event_loop_that_waits_for_requests_does_not_count) {
  const ThreadId server = main();
  for (int i = 0; i < 100; ++i) {
    maker.add(server, "main;run_forever;/lib/asyncio/base_events.py/_run_once;handle", 10 * kMs);
    blocked(server,
            "main;run_forever;/lib/asyncio/base_events.py/_run_once;/usr/lib/python3.12/selectors.py/select",
            90 * kMs, kEpoll);
  }
  EXPECT_EQ(shown(), 1000);
}

TEST_F(Work, a_script_that_sleeps_or_waits_for_a_program_is_seen) {
  const ThreadId script = main();
  for (int i = 0; i < 100; ++i) {
    maker.add(script, "main;compute", 10 * kMs);
    blocked(script, "main", 50 * kMs, kNanosleep);
    blocked(script, "main;/lib/subprocess.py/communicate;/usr/lib/python3.12/selectors.py/select", 40 * kMs,
            7);
  }
  EXPECT_EQ(shown(), 10'000);
}

// time.sleep() was select() before Python 3.11.
TEST_F(Work, a_sleep_by_select_is_no_event_loop) {
  const ThreadId script = main();
  maker.add(script, "main;compute", 100 * kMs);
  blocked(script, "main", 900 * kMs, kSelect);
  EXPECT_EQ(shown(), 1000);
}

TEST_F(Work, a_program_that_only_waits_is_seen_waiting) {
  const ThreadId script = main();
  blocked(script, "main;/usr/lib/python3.12/selectors.py/select", 995 * kMs, kEpoll);
  maker.add(script, "main;tick", 5 * kMs);
  const ThreadId other = maker.thread("monitor");
  blocked(other, "run;/usr/lib/python3.12/threading.py/wait", 999 * kMs, kFutex);
  maker.add(other, "run", 1 * kMs);
  // The main thread whole, and what the other computed.
  EXPECT_EQ(shown(), 1001);
}

TEST_F(Work, workers_that_only_wait_for_a_lock_are_seen_when_nobody_does_anything) {
  blocked(main(), "main;/usr/lib/python3.12/threading.py/join", 1000 * kMs, kFutex);
  for (int i = 0; i < 8; ++i) {
    const ThreadId worker = worker_thread();
    blocked(worker, "run;stock_of", 999 * kMs, kFutex);
    maker.add(worker, "run;stock_of", 1 * kMs);
  }
  EXPECT_EQ(shown(), 9000);
}

// As above on a busy machine, where starting up takes more of a short recording.
TEST_F(Work, workers_that_wait_for_a_lock_and_for_what_is_done_under_it_are_seen) {
  const ThreadId start = main();
  maker.add(start, "main;import", 60 * kMs);
  blocked(start, "main;/usr/lib/python3.12/threading.py/join", 1940 * kMs, kFutex);
  for (int i = 0; i < 8; ++i) {
    const ThreadId worker = worker_thread();
    // The lock is unfair: one has most of it.
    const Nanoseconds asks = (i == 3 ? 1500 : 30) * kMs;
    maker.add(worker, "run;work;stock_of", 4 * kMs);
    blocked(worker, "run;work;stock_of", 1996 * kMs - asks, kFutex);
    blocked(worker, "run;work;stock_of;ask", asks, kNanosleep);
  }
  const ThreadId heart = worker_thread();
  maker.add(heart, "run;beat", 1 * kMs);
  blocked(heart, "run;beat;send", 9 * kMs, kRecv);
  blocked(heart, "run;beat", 1990 * kMs, kNanosleep);
  EXPECT_EQ(shown(), 9 * 2000 + 1);
}

// The children it waits for are not recorded: nothing else would tell what it does.
TEST_F(Work, a_main_thread_that_waits_for_a_notification_is_seen) {
  const ThreadId script = main();
  maker.add(script, "main;prepare", 300 * kMs);
  blocked(script, "main;/usr/lib/python3.12/threading.py/wait", 700 * kMs, kFutex);
  EXPECT_EQ(shown(), 1000);
}

TEST_F(Work, who_wants_the_gil_or_a_lock_has_something_to_do) {
  for (int i = 0; i < 2; ++i) {
    const ThreadId worker = worker_thread();
    maker.add(worker, "run;crunch", 400 * kMs);
    blocked(worker, "run;crunch", 500 * kMs, kFutex, GilState::waits);
    blocked(worker, "run;crunch", 100 * kMs, kFutex);
  }
  EXPECT_EQ(shown(), 2000);
  EXPECT_EQ(shown(Show::computing), 1800);
}

// Forty threads that fetch pages compute 2 % of their time each: their waiting is what the program does.
TEST_F(Work, threads_that_wait_for_the_world_count) {
  for (int i = 0; i < 40; ++i) {
    const ThreadId worker = maker.thread("fetcher");
    maker.add(worker, "run;fetch;parse", 20 * kMs);
    blocked(worker, "run;fetch;recv", 980 * kMs, kRecv);
  }
  EXPECT_EQ(shown(), 40'000);
}

TEST_F(Work, threads_without_python_wait_for_work) {
  maker.add(main(), "main;dot", 1000 * kMs);
  const ThreadId native = maker.thread("");
  maker.add(native, "", 300 * kMs);
  blocked(native, "", 700 * kMs, kFutex);
  EXPECT_EQ(shown(), 1300);
}

TEST_F(Work, what_is_left_out_is_said_with_its_places) {
  maker.add(main(), "main;crunch", 1000 * kMs);
  for (int i = 0; i < 3; ++i)
    blocked(maker.thread("idle"), "run;worker;/usr/lib/python3.12/queue.py/get", 1000 * kMs, kFutex);
  blocked(maker.thread("listener"), "run;listen", 1000 * kMs, kRecv);
  Choices choices;
  choices.show = Show::work;
  EXPECT_EQ(
      left_out_words(waiting_for_work(profile, choices)),
      "4.00 s of waiting for something to do, in 4 of 5 threads: 3 in worker (app.py), 1 in listen (app.py)");
  choices.show = Show::everything;
  EXPECT_EQ(left_out_words(waiting_for_work(profile, choices)), "");
}

// Else a thread that computes 0.4 % in one recording and 0.6 % in the other would come and go with all of its
// waiting.
TEST_F(Work, two_recordings_are_judged_alike) {
  Profile other;
  other.put_meta("machine", "x86_64");
  ProfileMaker into(other);
  for (auto* side : {&maker, &into}) {
    side->add(side->thread("MainThread", 4711), "main;crunch", 10'000 * kMs);
    const ThreadId ticker = side->thread("ticker");
    const Nanoseconds computing = (side == &maker ? 40 : 60) * kMs;
    side->add(ticker, "run;tick", computing);
    Sample sample = side->sample(ticker, "run", 10'000 * kMs - computing);
    sample.cpu_state = CpuState::blocked;
    sample.gil_state = GilState::none;
    sample.system_call = kRecv;
    side->put(sample);
  }
  Choices choices;
  choices.show = Show::work;
  EXPECT_EQ(build_call_tree(profile, choices)->total, 10'040 * kMs);
  EXPECT_EQ(build_call_tree(other, choices)->total, 20'000 * kMs);
  const Choices both = choices_for_both(profile, other, choices);
  EXPECT_EQ(build_call_tree(profile, both)->total, 20'000 * kMs);
  EXPECT_EQ(build_call_tree(other, both)->total, 20'000 * kMs);
}

TEST_F(Work, a_whole_tree_has_the_parts_of_every_choice) {
  const ThreadId start = main();
  maker.add(start, "main;crunch", 1000 * kMs);
  blocked(start, "main;read", 500 * kMs, kRecv);
  blocked(maker.thread("idle"), "run", 2000 * kMs, kNanosleep);
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
}  // namespace phlox::profile
