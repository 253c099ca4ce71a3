#include "phlox/view/loop_stalls.h"

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
constexpr int16_t kFutex = 202, kEpoll = 232, kNanosleep = 230, kRead = 0;
const std::string kLib = "/usr/lib/python3.12/";
const std::string kOnce = "main;" + kLib + "asyncio/base_events.py/_run_once";
const std::string kPoll = kOnce + ";" + kLib + "selectors.py/select";
const std::string kCallback = kOnce + ";" + kLib + "asyncio/events.py/_run;";

// Of a recording of the kernel's capture, unless it is made sampled().
class LoopStallsOf : public testing::Test {
 protected:
  LoopStallsOf() {
    profile.emit_meta("machine", "x86_64");
    Process process = profile.process(ProcessId(1));
    process.mode = kInTheKernel;
    profile.emit(ProcessId(1), process);
  }
  void sampled(int64_t hz) {
    Process process = profile.process(ProcessId(1));
    process.mode = "same CPU (real time)";
    profile.emit(ProcessId(1), process);
    profile.emit({ProcessId(1), "ticks", hz * 10});
    profile.emit({ProcessId(), "elapsed_ns", 10 * kSecond});
    profile.emit({ProcessId(1), "elapsed_ns", 10 * kSecond});
  }
  void idle(Nanoseconds wall, uint32_t samples = 1) { blocked(kPoll, wall, kEpoll, samples); }
  void blocked(const std::string& frames, Nanoseconds wall, int16_t call, uint32_t samples = 1) {
    Sample sample = maker.blocked(thread, frames, wall, call);
    sample.samples = samples;
    maker.put(sample);
  }
  void ran(const std::string& frames, Nanoseconds wall, uint32_t samples = 1) {
    Sample sample = maker.sample(thread, frames, wall);
    sample.samples = samples;
    maker.put(sample);
  }
  // Turns that are none to speak of.
  void ticks(int turns) {
    for (int i = 0; i < turns; ++i) {
      idle(10 * kMs);
      ran(kOnce, 1 * kMs);
    }
  }
  LoopStalls stalls(Nanoseconds shortest = kStall, const Choices& choices = {}) {
    const auto all = loop_stalls(profile, *SampleFilter::make_judging(profile, choices), shortest);
    return all.empty() ? LoopStalls{} : all.front();
  }
  std::string words() { return stalls_words(profile, stalls()); }

  Profile profile;
  ProfileMaker maker{profile};
  ThreadId thread = maker.thread("MainThread", 4711);
};

TEST_F(LoopStallsOf, a_wait_in_a_callback_is_a_stall_of_one_turn) {
  idle(2850 * kMs);
  ran(kOnce, 1 * kMs);
  blocked(kCallback + "read_config:28", 404 * kMs, kNanosleep, 3);
  idle(1000 * kMs);
  const LoopStalls found = stalls();
  ASSERT_EQ(found.rows.size(), 1u);
  EXPECT_TRUE(found.exact);
  EXPECT_EQ(found.proved, 1u);
  EXPECT_EQ(found.rows[0].start, 2850 * kMs);
  EXPECT_EQ(found.rows[0].wall, 405 * kMs);
  EXPECT_EQ(found.rows[0].least, 404 * kMs);
  EXPECT_TRUE(found.rows[0].is_one_turn());
  EXPECT_EQ(found.rows[0].callbacks, 1u);
  EXPECT_EQ(words(), "1 stall of 50 ms or more; it took 405 ms at 2.85 s in read_config (app.py:28), asleep");
}

// A sample of the clock found the loop polling: what came before was over.
TEST_F(LoopStallsOf, a_poll_that_did_not_wait_parts_two_turns) {
  ticks(5);
  idle(10 * kMs);
  for (int i = 0; i < 40; ++i) ran(kCallback + "work:" + std::to_string(i % 2 + 3), 1 * kMs);
  ran(kPoll, 1 * kMs);
  for (int i = 0; i < 40; ++i) ran(kCallback + "work:" + std::to_string(i % 2 + 3), 1 * kMs);
  idle(10 * kMs);
  EXPECT_TRUE(stalls().rows.empty());
}

// asyncio.run() ends without another wait for events: what blocked the loop last is known until then.
TEST_F(LoopStallsOf, a_turn_after_which_the_loop_was_left_took_at_least_so_long) {
  ticks(5);
  idle(10 * kMs);
  for (int i = 0; i < 40; ++i) ran(kCallback + "work:" + std::to_string(i % 2 + 3), 10 * kMs);
  ran("main;" + kLib + "asyncio/runners.py/_cancel_all_tasks", 4 * kMs);
  ran(kOnce, 1 * kMs);
  ran("main", 100 * kMs);
  const LoopStalls found = stalls();
  ASSERT_EQ(found.rows.size(), 1u);
  EXPECT_EQ(found.rows[0].wall, 400 * kMs);
  EXPECT_TRUE(found.rows[0].is_cut);
}

// A program may run a loop again and again: what lies between is in no turn.
TEST_F(LoopStallsOf, time_between_two_runs_of_a_loop_is_in_no_turn) {
  ticks(5);
  blocked(kCallback + "reads:5", 60 * kMs, kNanosleep);
  ran("main;other:9", 500 * kMs);
  blocked(kCallback + "reads:5", 70 * kMs, kNanosleep);
  idle(10 * kMs);
  const LoopStalls found = stalls();
  ASSERT_EQ(found.rows.size(), 1u) << "where the second run of the loop began is not known";
  EXPECT_EQ(found.rows[0].wall, 61 * kMs);
  EXPECT_TRUE(found.rows[0].is_cut);
}

// Short waits are reported together, with the stack of one of them, or of one that was long ago: before the
// loop began, perhaps.
TEST_F(LoopStallsOf, short_waits_with_the_stack_of_another_moment_leave_no_loop) {
  for (const bool runnable : {false, true}) {
    SCOPED_TRACE(runnable);
    profile.replace_samples({}, profile.stacks());
    ticks(5);
    idle(10 * kMs);
    for (int i = 0; i < 40; ++i) {
      ran(kCallback + "work:" + std::to_string(i % 2 + 3), 10 * kMs);
      if (i % 10 != 9) continue;
      Sample sample = maker.blocked(thread, "main;prepares:3", kMs / 8, kRead);
      if (runnable) sample.cpu_state = CpuState::runnable;
      maker.put(sample);
    }
    idle(10 * kMs);
    const LoopStalls found = stalls();
    ASSERT_EQ(found.rows.size(), 1u);
    EXPECT_EQ(found.rows[0].wall, 400 * kMs + kMs / 2);
    EXPECT_FALSE(found.rows[0].is_cut);
  }
}

// Time of which nobody knows whether it was in a turn says nothing about other turns.
TEST_F(LoopStallsOf, callbacks_that_are_in_no_turn_make_no_stall_usual) {
  ran("main", 1 * kMs);
  ran(kCallback + "work:3", 300 * kMs, 3000);
  ran("main", 1 * kMs);
  ran(kCallback + "work:3", 300 * kMs, 3000);
  ran("main;reads:7", 1 * kMs);
  ran(kCallback + "work:3", 300 * kMs, 3000);
  ticks(5);
  idle(10 * kMs);
  for (int i = 0; i < 40; ++i) ran(kCallback + "work:" + std::to_string(i % 2 + 3), 10 * kMs);
  idle(10 * kMs);
  const LoopStalls found = stalls();
  ASSERT_FALSE(found.rows.empty());
  EXPECT_EQ(found.rows[0].wall, 400 * kMs);
}

// The poll lets go of the GIL: a wait for it there is the end of a poll.
TEST_F(LoopStallsOf, a_wait_for_the_gil_in_the_poll_parts_two_turns) {
  ticks(5);
  idle(10 * kMs);
  for (int turn = 0; turn < 10; ++turn) {
    for (int i = 0; i < 4; ++i) ran(kCallback + "work:3", 2 * kMs);
    maker.put(maker.blocked(thread, kPoll, 5 * kMs, kFutex, GilState::waits));
  }
  idle(10 * kMs);
  EXPECT_TRUE(stalls().rows.empty());
}

TEST_F(LoopStallsOf, time_on_a_cpu_is_one_turn_or_several) {
  ticks(10);
  idle(10 * kMs);
  for (int i = 0; i < 60; ++i)
    ran(kCallback + "crunch:" + std::to_string(i % 3 == 0 ? 7 : 8) + ";step", 2 * kMs);
  idle(10 * kMs);
  const LoopStalls found = stalls();
  ASSERT_EQ(found.rows.size(), 1u);
  EXPECT_EQ(found.proved, 0u);
  EXPECT_EQ(found.rows[0].kind, StallKind::cpu);
  EXPECT_EQ(found.rows[0].least, 0);
  EXPECT_EQ(
      words(),
      "1 time of 50 ms or more without a wait for events, in one turn or several; it took 120 ms at 0.12 s "
      "in step (app.py:2), on a CPU");
}

// A loop that is never idle: its samples between two waits are as those at all times.
TEST_F(LoopStallsOf, turns_like_all_others_of_a_busy_loop_are_no_stall) {
  for (int k = 0; k < 30; ++k) {
    idle(2 * kMs);
    for (int i = 0; i < 10; ++i) ran(i % 5 == 0 ? kOnce : kCallback + "handle", 2 * kMs);
  }
  idle(2 * kMs);
  for (int i = 0; i < 30; ++i) ran(i % 10 == 7 ? kOnce : kCallback + "handle", 2 * kMs);
  idle(2 * kMs);
  EXPECT_TRUE(stalls().rows.empty());
}

// Its callbacks all take long, so it is seldom found in its own code. But they move on.
TEST_F(LoopStallsOf, a_function_that_is_not_left_is_a_stall_of_a_busy_loop_too) {
  const auto request = [&](int number) {
    const std::string name = number % 3 == 0 ? "index" : number % 3 == 1 ? "about" : "search";
    for (int i = 0; i < 4; ++i) ran(kCallback + "handle;" + name + ":" + std::to_string(i), 2 * kMs);
  };
  for (int k = 0; k < 40; ++k) {
    idle(2 * kMs);
    if (k % 4 == 0) ran(kOnce, kMs);
    for (int i = 0; i < 4; ++i) request(k + i);
  }
  idle(2 * kMs);
  for (int i = 0; i < 20; ++i) request(i);
  idle(2 * kMs);
  EXPECT_TRUE(stalls().rows.empty()) << "twenty requests in a row";
  request(1);
  for (int i = 0; i < 45; ++i) ran(kCallback + "handle;parses:" + std::to_string(i % 5), 2 * kMs);
  request(2);
  idle(2 * kMs);
  const LoopStalls found = stalls();
  ASSERT_EQ(found.rows.size(), 1u);
  EXPECT_EQ(found.rows[0].wall, 106 * kMs);
  EXPECT_EQ(profile.frame(found.rows[0].frame).function, "parses");
  EXPECT_EQ(found.rows[0].least, 0);
}

// Both compute in one function, so the innermost function does not tell them apart.
TEST_F(LoopStallsOf, a_handler_that_others_are_not_in_is_a_stall_of_a_busy_loop_too) {
  const auto calls = [&](const std::string& handler, int samples) {
    for (int i = 0; i < samples; ++i) ran(kCallback + handler + ";burn:15", 5 * kMs);
  };
  for (int k = 0; k < 30; ++k) {
    idle(2 * kMs);
    calls("resize", 4);
  }
  idle(2 * kMs);
  calls("resize", 36);
  idle(2 * kMs);
  EXPECT_TRUE(stalls().rows.empty()) << "nine of these in a row";
  calls("resize", 4);
  calls("login", 36);
  idle(2 * kMs);
  const LoopStalls found = stalls();
  ASSERT_EQ(found.rows.size(), 1u);
  EXPECT_EQ(found.rows[0].wall, 200 * kMs);
  EXPECT_EQ(found.rows[0].least, 0);
}

TEST_F(LoopStallsOf, many_callbacks_in_a_row_are_counted) {
  ticks(10);
  idle(10 * kMs);
  for (int i = 0; i < 100; ++i) ran(kCallback + "tick_" + std::to_string(i % 20), 1 * kMs);
  idle(10 * kMs);
  const LoopStalls found = stalls();
  ASSERT_EQ(found.rows.size(), 1u);
  EXPECT_EQ(found.rows[0].callbacks, 20u);
  EXPECT_NE(words().find("in 20 callbacks, most in tick_"), std::string::npos) << words();
}

// Waits that are too short for a record are added up: their sum resembles one wait, with the samples of many.
TEST_F(LoopStallsOf, a_sum_of_short_waits_proves_no_turn) {
  ticks(10);
  idle(10 * kMs);
  blocked(kCallback + "load:3", 60 * kMs, kRead, 40);
  idle(10 * kMs);
  const LoopStalls found = stalls();
  ASSERT_EQ(found.rows.size(), 1u);
  EXPECT_EQ(found.proved, 0u);
  EXPECT_EQ(found.rows[0].least, 0);
}

// On a host where waits shorter than 32 ms are added up, 60 ms may be such a sum.
TEST_F(LoopStallsOf, a_wait_is_one_if_short_ones_were_reported_nearby) {
  idle(3000 * kMs);
  blocked(kCallback + "load:3", 60 * kMs, kRead);
  idle(3000 * kMs);
  EXPECT_EQ(stalls().proved, 0u);
  blocked(kCallback + "load:3", 60 * kMs, kRead);
  idle(2 * kMs);
  EXPECT_EQ(stalls().proved, 1u);
}

TEST_F(LoopStallsOf, what_a_long_wait_leaves_of_a_turn_may_be_of_others) {
  ticks(10);
  idle(10 * kMs);
  blocked(kCallback + "load:3", 60 * kMs, kNanosleep);
  for (int i = 0; i < 50; ++i) ran(kCallback + "other", 4 * kMs);
  idle(10 * kMs);
  const LoopStalls found = stalls();
  ASSERT_EQ(found.rows.size(), 1u);
  EXPECT_EQ(found.proved, 1u);
  EXPECT_FALSE(found.rows[0].is_one_turn());
  EXPECT_EQ(stall_length(found.rows[0]), "60 ms to 260 ms");
  EXPECT_EQ(found.rows[0].kind, StallKind::cpu);
}

// What ran between two waits without a sample has the stack of an earlier one.
TEST_F(LoopStallsOf, a_run_without_a_sample_of_its_own_parts_no_turns) {
  ticks(10);
  idle(10 * kMs);
  blocked(kCallback + "load:3", 100 * kMs, kNanosleep);
  ran(kPoll, 1 * kMs, 0);
  blocked(kCallback + "load:4", 100 * kMs, kNanosleep);
  idle(10 * kMs);
  ASSERT_EQ(stalls().rows.size(), 1u);
  EXPECT_EQ(stall_length(stalls().rows[0]), "100 ms to 201 ms");
}

// The kernel adds up short waits, and reports them with the next sample.
TEST_F(LoopStallsOf, short_waits_for_events_that_are_reported_late_leave_the_begin_open) {
  ticks(10);
  idle(10 * kMs);
  const auto run = [&](int times) {
    for (int i = 0; i < times; ++i) ran(kCallback + "crunch:" + std::to_string(i % 2 + 7), 2 * kMs);
  };
  const auto brief = [&](Nanoseconds wall) {
    Sample wait = maker.blocked(thread, kPoll, wall, kEpoll);
    wait.samples = 0;
    maker.put(wait);
  };
  run(40);
  brief(kMs / 5);
  run(20);
  idle(10 * kMs);
  ASSERT_EQ(stalls().rows.size(), 1u);
  EXPECT_EQ(stalls().rows[0].brief, kMs / 5);
  EXPECT_EQ(stalls().rows[0].error, 2 * kMs);
  EXPECT_NE(words().find("1 time of 50 ms or more without a wait for events of 2 ms or more"),
            std::string::npos)
      << words();
  run(20);
  brief(5 * kMs / 2);
  run(20);
  idle(10 * kMs);
  EXPECT_EQ(stalls().rows.size(), 1u);
}

// With little room for its walks the capture has waits without a stack. What was seen before and after one is
// certain.
TEST_F(LoopStallsOf, before_and_after_a_wait_whose_stack_was_not_read_took_at_least_so_long) {
  const std::string unread = "(a wait whose stack was not read)";
  ticks(10);
  idle(10 * kMs);
  blocked(kCallback + "load:3", 100 * kMs, kNanosleep);
  blocked(unread, 70 * kMs, kEpoll);
  ran(kCallback + "work:8", 5 * kMs);
  blocked(kCallback + "save:9", 60 * kMs, kNanosleep);
  idle(10 * kMs);
  const LoopStalls found = stalls();
  ASSERT_EQ(found.rows.size(), 2u) << "it may have been the poll, and is in neither";
  EXPECT_EQ(found.proved, 2u);
  EXPECT_EQ(stall_length(found.rows[0]), "at least 100 ms");
  EXPECT_EQ(stall_length(found.rows[1]), "at least 65 ms");
  EXPECT_EQ(found.rows[0].start + found.rows[0].wall + 70 * kMs, found.rows[1].start);
}

TEST_F(LoopStallsOf, a_wait_that_was_not_read_ends_a_turn_if_all_others_in_its_call_were_the_loops) {
  ticks(100);
  idle(10 * kMs);
  blocked(kCallback + "load:3", 100 * kMs, kNanosleep);
  blocked("(a wait whose stack was not read)", 70 * kMs, kEpoll);
  blocked(kCallback + "save:9", 60 * kMs, kNanosleep);
  idle(10 * kMs);
  const LoopStalls found = stalls();
  ASSERT_EQ(found.rows.size(), 2u);
  EXPECT_EQ(stall_length(found.rows[0]), "100 ms");
  EXPECT_EQ(stall_length(found.rows[1]), "60 ms");
}

TEST_F(LoopStallsOf, a_wait_of_which_nobody_knows_whether_it_was_for_events_makes_no_stall) {
  ticks(10);
  for (int i = 0; i < 10; ++i) {
    blocked("(a wait whose stack was not read)", 200 * kMs, kEpoll);
    ran(kOnce, 1 * kMs);
  }
  EXPECT_TRUE(stalls().rows.empty());
}

TEST_F(LoopStallsOf, time_that_is_not_in_the_recording_is_in_no_stall) {
  ticks(10);
  idle(10 * kMs);
  blocked(kCallback + "load:3", 100 * kMs, kNanosleep);
  Sample later = maker.blocked(thread, kCallback + "load:4", 60 * kMs, kNanosleep);
  later.start += 40 * kMs;
  maker.put(later);
  const LoopStalls found = stalls();
  ASSERT_EQ(found.rows.size(), 2u);
  EXPECT_EQ(stall_length(found.rows[0]), "at least 100 ms");
  EXPECT_EQ(stall_length(found.rows[1]), "at least 60 ms");
}

// The parent's loop, and its callback, are on the stack of a child of os.fork().
TEST_F(LoopStallsOf, what_a_forked_process_does_below_its_parents_loop_is_no_stall) {
  const ProcessId process = maker.process(4712);
  thread = maker.thread("MainThread", 4712, process);
  Process row = profile.process(process);
  row.mode = kInTheKernel;
  profile.emit(process, row);
  blocked(kCallback + "fork_one:3;work:9", 400 * kMs, kNanosleep);
  EXPECT_EQ(stalls().rows.size(), 1u) << "it may be a program of its own";
  profile.emit_meta(std::string(kForkedFrom) + "2", "1");
  EXPECT_TRUE(stalls().rows.empty());
  // It has returned into the loop, and runs that now.
  idle(500 * kMs);
  ASSERT_EQ(stalls().rows.size(), 1u);
  EXPECT_EQ(stalls().rows[0].wall, 400 * kMs);
}

TEST_F(LoopStallsOf, the_holder_of_the_gil_is_named) {
  const ThreadId worker = maker.thread("worker", 4712);
  ticks(10);
  idle(10 * kMs);
  maker.add(worker, "idle", 120 * kMs);
  Sample holds = maker.sample(worker, "run;spin:7", 300 * kMs);
  holds.gil_state = GilState::holds;
  maker.put(holds);
  Sample waits = maker.blocked(thread, kCallback + "handle:9", 300 * kMs, kFutex, GilState::waits);
  waits.samples = 60;
  maker.put(waits);
  idle(10 * kMs);
  EXPECT_EQ(words(),
            "1 stall of 50 ms or more; it took 300 ms at 0.12 s in handle (app.py:9), waiting for the GIL, "
            "held by Thread worker (4712) in spin (app.py:7)");
}

TEST_F(LoopStallsOf, what_is_left_out_of_the_time_is_no_stall) {
  idle(1000 * kMs);
  blocked(kCallback + "load:3", 200 * kMs, kNanosleep);
  idle(1000 * kMs);
  Choices choices;
  choices.from = 1100 * kMs;
  EXPECT_TRUE(stalls(kStall, choices).rows.empty());
  choices.from = 900 * kMs;
  EXPECT_EQ(stalls(kStall, choices).rows.size(), 1u);
  EXPECT_TRUE(stalls(300 * kMs).rows.empty());
}

// The beginning of the turn was not seen.
TEST_F(LoopStallsOf, a_stall_in_which_the_recording_begins_took_at_least_as_long) {
  blocked(kCallback + "load:3", 200 * kMs, kNanosleep);
  idle(1000 * kMs);
  ASSERT_EQ(stalls().rows.size(), 1u);
  EXPECT_EQ(stall_length(stalls().rows[0]), "at least 200 ms");
}

// A wait for a CPU may be reported late, within the wait that followed it.
TEST_F(LoopStallsOf, a_wait_for_a_cpu_that_is_reported_late_splits_no_wait) {
  idle(1000 * kMs);
  blocked(kCallback + "load:3", 184 * kMs, kNanosleep, 2);
  Sample late = maker.sample(thread, kCallback + "load:3", kMs / 10);
  late.cpu_state = CpuState::runnable;
  late.samples = 0;
  maker.put(late);
  blocked(kCallback + "load:3", 129 * kMs, kNanosleep);
  late.start += 129 * kMs + late.wall;
  late.wall = 8 * kMs;
  maker.put(late);
  maker.sample(thread, "", late.wall);
  idle(1000 * kMs);
  ASSERT_EQ(stalls().rows.size(), 1u);
  EXPECT_TRUE(stalls().rows[0].is_one_turn());
}

// Greenlets have stacks of their own, of which the hub is no part.
TEST_F(LoopStallsOf, a_greenlet_that_is_blocked_keeps_its_hub_from_polling) {
  const std::string hub = "/site/gevent/hub.py/run";
  maker.put(maker.blocked(thread, hub, 500 * kMs, kEpoll));
  ran("/site/gevent/site-packages/greenlet.py/run;handle:5;inner", 2 * kMs);
  blocked("/site/gevent/site-packages/greenlet.py/run;handle:5", 148 * kMs, kNanosleep);
  maker.put(maker.blocked(thread, hub, 500 * kMs, kEpoll));
  ASSERT_EQ(stalls().rows.size(), 1u);
  EXPECT_EQ(stalls().rows[0].callbacks, 1u);
  EXPECT_EQ(words(), "1 stall of 50 ms or more; it took 150 ms at 0.50 s in handle (app.py:5), asleep");
}

// uvloop: the loop is C, and waits in epoll itself.
TEST_F(LoopStallsOf, a_loop_in_c_polls_itself) {
  const std::string run = "main;/site/uvloop/__init__.py/run;" + kLib + "asyncio/runners.py/run";
  maker.put(maker.blocked(thread, run, 500 * kMs, kEpoll));
  blocked(run + ";handle:5", 150 * kMs, kNanosleep);
  maker.put(maker.blocked(thread, run, 500 * kMs, kEpoll));
  EXPECT_EQ(words(), "1 stall of 50 ms or more; it took 150 ms at 0.50 s in handle (app.py:5), asleep");
}

// On a busy host samples come late: the loop was found idle, and 60 ms later asleep in a callback.
// Short waits are put where there is room, and these have the stack of a poll: each is enough to end a turn.
TEST_F(LoopStallsOf, what_goes_on_beyond_short_waits_is_in_the_error) {
  const std::string burns = kCallback + "burns:34";
  const auto piece = [&] { idle(1'200'000, 0); };
  idle(100 * kMs);
  ran(kCallback + "other:5", 7 * kMs, 1);
  piece();
  ran(burns, 20 * kMs, 4);
  piece();
  ran(burns, 20 * kMs, 4);
  piece();
  for (int i = 0; i < 60; ++i) ran(burns, 5 * kMs, 1);
  piece();
  ran(burns, 10 * kMs, 2);
  piece();
  ran(kCallback + "other:5", 7 * kMs, 1);
  idle(1000 * kMs);
  ASSERT_EQ(stalls().rows.size(), 1u);
  const Stall stall = stalls().rows[0];
  const Nanoseconds begins = 100 * kMs + 7 * kMs + 1'200'000, ends = begins + 350 * kMs + 3 * 1'200'000;
  EXPECT_GT(stall.start, begins);
  EXPECT_LE(stall.start - stall.error, begins);
  EXPECT_GE(stall.start + stall.wall + stall.error, ends);
  EXPECT_LT(stall.error, 100 * kMs);
}

// A sum of short waits may have the stack of a wait for a CPU in an earlier poll.
TEST_F(LoopStallsOf, a_short_wait_for_a_cpu_in_the_poll_ends_no_turn) {
  idle(100 * kMs);
  for (int i = 0; i < 30; ++i) ran(kCallback + "burns:34", 5 * kMs, 1);
  Sample sample = maker.sample(thread, kPoll, 411'000);
  sample.cpu_state = CpuState::runnable;
  maker.put(sample);
  for (int i = 0; i < 40; ++i) ran(kCallback + "burns:34", 5 * kMs, 1);
  idle(1000 * kMs);
  ASSERT_EQ(stalls().rows.size(), 1u);
  EXPECT_EQ(stalls().rows[0].start, 100 * kMs);
  EXPECT_EQ(stalls().rows[0].wall, 350 * kMs + 411'000);
}

// Neither another line of the same callback nor a stack that was not read is the end of it.
TEST_F(LoopStallsOf, the_error_reaches_to_the_last_sample_of_something_else) {
  const std::string callback = kCallback + "main:54";
  idle(100 * kMs);
  ran(kCallback + "other:5", 2 * kMs, 1);
  ran(callback + ";burns:33", 40 * kMs, 8);
  idle(1'200'000, 0);
  ran("(a wait whose stack was not read)", 40 * kMs, 8);
  idle(1'900'000, 0);
  for (int i = 0; i < 50; ++i) ran(callback + ";burns:34", 5 * kMs, 1);
  idle(1000 * kMs);
  ASSERT_EQ(stalls().rows.size(), 1u);
  const Stall stall = stalls().rows[0];
  EXPECT_GT(stall.start, 180 * kMs);
  EXPECT_LE(stall.start - stall.error, 102 * kMs);
  EXPECT_GT(stall.start - stall.error, 99 * kMs);
}

// run_forever() calls _run_once() once a turn. A sample can find the thread in between.
TEST_F(LoopStallsOf, run_forever_is_the_loops_own_code) {
  const std::string forever = "main;" + kLib + "asyncio/base_events.py/run_forever";
  const std::string once = forever + ";" + kLib + "asyncio/base_events.py/_run_once";
  const std::string poll = once + ";" + kLib + "selectors.py/select";
  blocked(poll, 50 * kMs, kEpoll);
  ran(forever, kMs, 1);
  blocked(once + ";" + kLib + "asyncio/events.py/_run;naps:17", 170 * kMs, kNanosleep);
  ran(forever, kMs, 1);
  blocked(poll, 50 * kMs, kEpoll);
  ASSERT_EQ(stalls().rows.size(), 1u);
  EXPECT_EQ(stalls().rows[0].start, 50 * kMs);
  EXPECT_EQ(stalls().rows[0].wall, 172 * kMs);
}

// A selector of the program's own, which calls another one, or waits itself.
TEST_F(LoopStallsOf, a_loop_waits_for_events_in_whatever_selector_it_has) {
  for (const std::string& poll :
       {kOnce + ";select:41;" + kLib + "selectors.py/select", kOnce + ";select:41"}) {
    blocked(poll, 500 * kMs, kEpoll);
    ran(poll, 1 * kMs);
  }
  EXPECT_TRUE(stalls().rows.empty());
  blocked(kCallback + "fetch:7;select:9", 300 * kMs, kEpoll);
  blocked(kOnce + ";select:41;hook:3", 200 * kMs, kRead);
  blocked(kOnce + ";select:41", 500 * kMs, kEpoll);
  const LoopStalls found = stalls();
  ASSERT_EQ(found.rows.size(), 1u)
      << "a select() in a callback is not the loop's, and work of the hook is work";
  EXPECT_EQ(found.rows[0].start, 1001 * kMs);
  EXPECT_EQ(found.rows[0].wall, 501 * kMs);
}

TEST_F(LoopStallsOf, the_gap_between_samples_is_the_error_of_a_stall) {
  sampled(100);
  idle(500 * kMs, 50);
  blocked(kCallback + "read_config:28", 60 * kMs, kNanosleep);
  ran(kCallback + "read_config:29", 300 * kMs, 30);
  idle(500 * kMs, 50);
  ASSERT_EQ(stalls().rows.size(), 1u);
  EXPECT_EQ(stalls().rows[0].error, 60 * kMs);
}

TEST_F(LoopStallsOf, samples_alone_prove_no_turn) {
  sampled(100);
  idle(500 * kMs, 50);
  blocked(kCallback + "read_config:28", 400 * kMs, kNanosleep, 40);
  idle(500 * kMs, 50);
  const LoopStalls found = stalls();
  ASSERT_EQ(found.rows.size(), 1u);
  EXPECT_FALSE(found.exact);
  EXPECT_EQ(found.interval, 10 * kMs);
  EXPECT_EQ(found.rows[0].error, 10 * kMs);
  EXPECT_EQ(found.rows[0].least, 0);
  EXPECT_EQ(
      words(),
      "1 time of 50 ms or more without a sample in which it waited for events (samples are 10 ms apart on "
      "average); it "
      "took 400 ms ± 10 ms at 0.50 s in read_config (app.py:28), asleep");
}

}  // namespace
}  // namespace phlox::view
