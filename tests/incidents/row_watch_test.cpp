#include "phlox/incidents/row_watch.h"

#include <gtest/gtest.h>

#include <csignal>

#include "support/profile_of.h"

namespace phlox::incidents {
namespace {

using namespace profile;
using test::ProfileMaker;

constexpr Nanoseconds kMs = 1'000'000;
constexpr int16_t kEpoll = 232, kNanosleep = 230;
const std::string kLib = "/usr/lib/python3.12/";
const std::string kOnce = "main;" + kLib + "asyncio/base_events.py/_run_once";
const std::string kPoll = kOnce + ";" + kLib + "selectors.py/select";
const std::string kCallback = kOnce + ";" + kLib + "asyncio/events.py/_run;";

class Watched : public testing::Test {
 protected:
  void watch(const std::vector<std::string>& conditions, std::string_view mode = kInTheKernel) {
    std::vector<Condition> parsed;
    for (const std::string& text : conditions) parsed.push_back(*parse_condition(text));
    watch_ = std::make_unique<RowWatch>(parsed, kept_, [this](Cause cause) { causes_.push_back(cause); });
    watch_->emit_meta("machine", "x86_64");
    watch_->emit_meta("start_monotonic_ns", std::to_string(ProfileMaker::kStart));
    maker_.emplace(*watch_);
    Process process = kept_.process(ProcessId(1));
    process.mode = mode;
    watch_->emit(ProcessId(1), process);
  }
  void put(Sample sample, uint32_t samples = 1) {
    sample.samples = samples;
    maker_->put(sample);
  }
  void idle(ThreadId thread, Nanoseconds wall) { put(maker_->blocked(thread, kPoll, wall, kEpoll)); }
  // Commits come four times a second.
  void commit() { ASSERT_TRUE(watch_->commit()); }
  void turns(ThreadId thread, int count) {
    for (int i = 0; i < count; ++i) {
      idle(thread, 10 * kMs);
      put(maker_->sample(thread, kOnce, kMs));
      if (i % 20 == 0) commit();
    }
  }

  Profile kept_;
  std::vector<Cause> causes_;
  std::unique_ptr<RowWatch> watch_;
  std::optional<ProfileMaker> maker_;
};

TEST_F(Watched, rows_are_passed_on) {
  watch({"stall=200ms"});
  const ThreadId loop = maker_->thread("loop");
  turns(loop, 10);
  EXPECT_EQ(kept_.samples().size(), 20u);
  EXPECT_EQ(kept_.meta().at("machine"), "x86_64");
}

TEST_F(Watched, whether_there_is_a_loop_is_known_from_its_functions) {
  watch({"stall=200ms"});
  const ThreadId thread = maker_->thread("main");
  put(maker_->blocked(thread, "main;wait_for_socket", 100 * kMs, kEpoll));
  EXPECT_FALSE(watch_->has_met_loop());
  idle(thread, 10 * kMs);
  EXPECT_TRUE(watch_->has_met_loop());
}

TEST_F(Watched, a_stall_is_reported_once) {
  watch({"stall=200ms"});
  const ThreadId loop = maker_->thread("loop");
  turns(loop, 200);
  EXPECT_TRUE(causes_.empty());
  put(maker_->blocked(loop, kCallback + "read_config:28", 404 * kMs, kNanosleep), 2);
  turns(loop, 400);
  ASSERT_EQ(causes_.size(), 1u);
  EXPECT_EQ(causes_[0].kind, Kind::stall);
  EXPECT_NE(causes_[0].words.find("stall of 405 ms in read_config (app.py:28)"), std::string::npos)
      << causes_[0].words;
  EXPECT_EQ(causes_[0].in_short, "stall of 405 ms");
  EXPECT_NEAR(double(causes_[0].time - ProfileMaker::kStart) / 1e9, 2.2, 0.05);
}

TEST_F(Watched, a_sleep_by_select_is_no_wait_for_events) {
  constexpr int16_t kPselect6 = 270;
  watch({"stall=200ms"});
  const ThreadId loop = maker_->thread("loop");
  watch_->emit(WaitTargetId(1), WaitTarget{WaitTargetKind::time, "a timeout", ""});
  for (const WaitTargetId target : {WaitTargetId(1), WaitTargetId()}) {
    turns(loop, 200);
    Sample sleeps = maker_->blocked(loop, kCallback + "f", 404 * kMs, kPselect6);
    sleeps.wait_target = target;
    put(sleeps, 2);
  }
  turns(loop, 200);
  EXPECT_EQ(causes_.size(), 2u);
}

TEST_F(Watched, a_shorter_stall_is_none) {
  watch({"stall=200ms"});
  const ThreadId loop = maker_->thread("loop");
  turns(loop, 200);
  put(maker_->blocked(loop, kCallback + "f", 150 * kMs, kNanosleep), 1);
  turns(loop, 400);
  EXPECT_TRUE(causes_.empty()) << causes_[0].words;
}

TEST_F(Watched, a_stall_that_does_not_end_is_reported_and_what_continues_is_not_reported_again) {
  watch({"stall=200ms"});
  const ThreadId loop = maker_->thread("loop");
  turns(loop, 200);
  for (int i = 0; i < 240; ++i) {  // a minute
    put(maker_->sample(loop, kCallback + "spin:7", 250 * kMs), 50);
    commit();
  }
  EXPECT_EQ(causes_.size(), 1u);
  turns(loop, 400);
  EXPECT_EQ(causes_.size(), 1u);
  put(maker_->sample(loop, kCallback + "spin:7", 300 * kMs), 60);
  turns(loop, 400);
  EXPECT_EQ(causes_.size(), 2u);
}

TEST_F(Watched, a_thread_that_polls_without_a_loop_has_no_stalls) {
  watch({"stall=200ms"});
  const ThreadId thread = maker_->thread("worker");
  for (int i = 0; i < 100; ++i) {
    put(maker_->blocked(thread, "main;wait_for_socket", 100 * kMs, kEpoll));
    put(maker_->sample(thread, "main;compute", 500 * kMs), 100);
    commit();
  }
  EXPECT_TRUE(causes_.empty()) << causes_[0].words;
}

TEST_F(Watched, a_long_wait_for_the_gil_names_who_held_it) {
  watch({"gil=100ms"});
  const ThreadId waiter = maker_->thread("MainThread"), holder = maker_->thread("worker");
  for (int i = 0; i < 30; ++i) {
    Sample holds = maker_->sample(holder, "run;crunch:9", 5 * kMs);
    holds.gil_state = GilState::holds;
    put(holds);
    put(maker_->blocked(waiter, "main;f", 5 * kMs, 202, GilState::waits));
    if (i % 10 == 0) commit();
  }
  commit();
  ASSERT_EQ(causes_.size(), 1u);
  EXPECT_NE(causes_[0].words.find("thread worker (4712) held it for "), std::string::npos)
      << causes_[0].words;
  EXPECT_NE(causes_[0].words.find("crunch (app.py:9)"), std::string::npos) << causes_[0].words;
  EXPECT_EQ(causes_[0].time, ProfileMaker::kStart);
}

// A new thread has the kernel's name of its process.
TEST_F(Watched, a_thread_is_not_named_by_its_process) {
  for (const auto& [kernel_name, words] : std::vector<std::pair<std::string, std::string>>{
           {"python3", "; thread 4712 held it for "}, {"loader", "; thread loader (4712) held it for "}}) {
    kept_ = Profile();
    causes_.clear();
    watch({"gil=100ms"});
    const ThreadId waiter = maker_->thread("MainThread"), holder = maker_->thread("");
    Thread named = kept_.thread(holder);
    named.kernel_name = kernel_name;
    watch_->emit(holder, named);
    for (int i = 0; i < 30; ++i) {
      Sample holds = maker_->sample(holder, "run;crunch:9", 5 * kMs);
      holds.gil_state = GilState::holds;
      put(holds);
      put(maker_->blocked(waiter, "main;f", 5 * kMs, 202, GilState::waits));
    }
    commit();
    ASSERT_EQ(causes_.size(), 1u);
    EXPECT_NE(causes_[0].words.find(words), std::string::npos) << causes_[0].words;
  }
}

TEST_F(Watched, threads_that_take_turns_do_not_hold_the_gil_for_long) {
  watch({"gil=100ms"});
  const ThreadId waiter = maker_->thread("MainThread");
  const ThreadId holders[] = {maker_->thread("a"), maker_->thread("b"), maker_->thread("c")};
  Nanoseconds now = ProfileMaker::kStart;
  for (int i = 0; i < 30; ++i, now += 5 * kMs) {
    Sample holds = maker_->sample(holders[i % 3], "run", 5 * kMs);
    holds.start = now;
    holds.gil_state = GilState::holds;
    put(holds);
    put(maker_->blocked(waiter, "main;f", 5 * kMs, 202, GilState::waits));
  }
  commit();
  EXPECT_TRUE(causes_.empty()) << causes_[0].words;
}

TEST_F(Watched, cpu_time_is_reported_each_time_that_it_exceeds_the_limit) {
  watch({"cpu=90%/5s", "cpu-wait=50%/5s"});
  const ThreadId thread = maker_->thread("main");
  const auto seconds = [&](int count, Nanoseconds cpu, CpuState state) {
    for (int i = 0; i < 4 * count; ++i) {
      Sample sample = maker_->sample(thread, "main;f", 250 * kMs);
      sample.cpu = cpu;
      sample.cpu_state = state;
      put(sample);
      commit();
    }
  };
  seconds(20, 100 * kMs, CpuState::running);
  EXPECT_TRUE(causes_.empty());
  seconds(20, 250 * kMs, CpuState::running);
  ASSERT_EQ(causes_.size(), 1u);
  EXPECT_EQ(causes_[0].kind, Kind::cpu);
  EXPECT_NE(causes_[0].words.find("used 97 % of a CPU over 5 s"), std::string::npos) << causes_[0].words;
  seconds(20, 0, CpuState::runnable);
  ASSERT_EQ(causes_.size(), 2u);
  EXPECT_EQ(causes_[1].kind, Kind::cpu_wait);
  seconds(20, 250 * kMs, CpuState::running);
  EXPECT_EQ(causes_.size(), 3u);
}

TEST_F(Watched, a_row_that_grows_counts_once) {
  watch({"cpu=90%/2s"});
  const ThreadId thread = maker_->thread("main");
  Sample sample = maker_->sample(thread, "main;f", 250 * kMs);
  for (uint32_t id = 1; id <= 20; ++id) {
    sample.start = ProfileMaker::kStart + id * kSecond;
    for (int part = 1; part <= 4; ++part) {
      sample.wall = part * 250 * kMs;
      sample.cpu = sample.wall * 4 / 5;
      watch_->emit(SampleId(id), sample);
      commit();
    }
  }
  EXPECT_TRUE(causes_.empty()) << causes_[0].words;
}

class Deaths : public Watched {
 protected:
  void event(EventKind kind, Nanoseconds time, int64_t value, std::string text,
             std::optional<ThreadId> thread = {}) {
    Event event;
    event.kind = kind;
    event.time = time;
    event.process = ProcessId(1);
    event.thread = thread;
    event.value = value;
    event.text = std::move(text);
    watch_->emit(event);
  }
};

TEST_F(Deaths, a_process_that_is_killed_is_reported_with_the_sender) {
  watch({"death"});
  const ThreadId thread = maker_->thread("main");
  event(EventKind::signal_received, kSecond, SIGKILL, "gunicorn (4700): ends it");
  event(EventKind::signal_delivered, kSecond, SIGKILL, "", thread);
  EXPECT_TRUE(causes_.empty());
  event(EventKind::process_end, 2 * kSecond, 0, "ended");
  ASSERT_EQ(causes_.size(), 1u);
  EXPECT_EQ(causes_[0].words, "SIGKILL ended process 4711 (python3 app.py): gunicorn (4700) sent it");
  EXPECT_EQ(causes_[0].time, kSecond);
}

TEST_F(Deaths, an_end_that_was_asked_for_is_no_death_and_a_handled_signal_is_none) {
  watch({"death"});
  const ThreadId thread = maker_->thread("main");
  event(EventKind::signal_received, kSecond, SIGABRT, "sh (1)");
  event(EventKind::signal_delivered, kSecond, SIGABRT, "handled", thread);
  event(EventKind::signal_received, 2 * kSecond, SIGTERM, "sh (1): ends it");
  event(EventKind::process_end, 3 * kSecond, 0, "signal 15 (SIGTERM)");
  EXPECT_TRUE(causes_.empty()) << causes_[0].words;
}

// As gunicorn's arbiter does it.
TEST_F(Deaths, a_process_that_handles_an_abort_and_ends_is_reported) {
  watch({"death"});
  const ThreadId thread = maker_->thread("main");
  event(EventKind::signal_received, kSecond, SIGABRT, "gunicorn (4700)");
  event(EventKind::signal_delivered, kSecond, SIGABRT, "handled", thread);
  EXPECT_TRUE(causes_.empty());
  event(EventKind::process_end, kSecond + 161 * kMs, 0, "ended");
  ASSERT_EQ(causes_.size(), 1u);
  EXPECT_EQ(causes_[0].words,
            "process 4711 (python3 app.py) handled SIGABRT, and ended 161 ms later: gunicorn (4700) sent it");
  EXPECT_EQ(causes_[0].in_short, "process 4711 ended after SIGABRT");
  EXPECT_EQ(causes_[0].time, kSecond);
}

TEST_F(Deaths, what_is_handled_and_followed_by_sigkill_is_the_sigkill) {
  watch({"death"});
  const ThreadId thread = maker_->thread("main");
  event(EventKind::signal_received, kSecond, SIGABRT, "gunicorn (4700)");
  event(EventKind::signal_delivered, kSecond, SIGABRT, "handled", thread);
  event(EventKind::signal_received, 2 * kSecond, SIGKILL, "gunicorn (4700): ends it");
  event(EventKind::process_end, 3 * kSecond, 0, "ended");
  ASSERT_EQ(causes_.size(), 1u);
  EXPECT_EQ(causes_[0].in_short, "SIGKILL ended process 4711");
}

TEST_F(Deaths, an_end_long_after_a_handled_signal_or_after_a_harmless_one_is_no_death) {
  watch({"death"});
  const ThreadId thread = maker_->thread("main");
  event(EventKind::signal_received, kSecond, SIGABRT, "sh (1)");
  event(EventKind::signal_delivered, kSecond, SIGABRT, "handled", thread);
  event(EventKind::signal_received, 19 * kSecond, SIGUSR1, "sh (1)");
  event(EventKind::signal_delivered, 19 * kSecond, SIGUSR1, "handled", thread);
  event(EventKind::process_end, 20 * kSecond, 0, "ended");
  EXPECT_TRUE(causes_.empty()) << causes_[0].words;
}

TEST_F(Deaths, without_the_kernel_a_child_tells_how_it_ended) {
  watch({"death"}, "same CPU (real time)");
  event(EventKind::process_end, 3 * kSecond, 0, "exit 1");
  EXPECT_TRUE(causes_.empty());
  event(EventKind::process_end, 3 * kSecond, 0, "signal 11 (SIGSEGV)");
  ASSERT_EQ(causes_.size(), 1u);
  EXPECT_EQ(causes_[0].words, "SIGSEGV ended process 4711 (python3 app.py)");
}

TEST(BlindSpots, are_said_outside_the_kernel) {
  const std::vector<Condition> all = {*parse_condition("stall=200ms"), *parse_condition("gil=100ms"),
                                      *parse_condition("death"), *parse_condition("cpu=90%")};
  Process process;
  process.mode = kInTheKernel;
  EXPECT_TRUE(RowWatch::blind_spots(all, process, false).empty());
  process.mode = "same CPU (real time)";
  EXPECT_EQ(RowWatch::blind_spots(all, process, false).size(), 3u);
  EXPECT_EQ(RowWatch::blind_spots({all.back()}, process, false).size(), 0u);
}

TEST(BlindSpots, a_free_threaded_python_has_no_gil_to_wait_for) {
  const std::vector<Condition> gil = {*parse_condition("gil=100ms")};
  Process process;
  for (const char* mode : {"in the kernel (BPF)", "same CPU (real time)"}) {
    for (const char* build : {"free-threaded", "free-threaded debug"}) {
      process.mode = mode;
      process.python_build = build;
      const auto said = RowWatch::blind_spots(gil, process, false);
      ASSERT_EQ(said.size(), 1u);
      EXPECT_NE(said[0].find("never becomes true"), std::string::npos);
    }
  }
}

}  // namespace
}  // namespace phlox::incidents
