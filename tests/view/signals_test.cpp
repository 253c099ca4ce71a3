#include "phlox/view/signals.h"

#include <gtest/gtest.h>

#include <csignal>
#include <string>

#include "support/profile_of.h"

#include "phlox/profile/recorded_words.h"

namespace phlox::view {

using namespace profile;

namespace {

using test::ProfileMaker;

constexpr Nanoseconds kMs = 1'000'000;

class Signals : public testing::Test {
 protected:
  Signals() {
    master = maker.process(4700);
    worker = maker.process(4711);
    arbiter = maker.thread("MainThread", 4700, master);
    request = maker.thread("MainThread", 4711, worker);
    other = maker.thread("other", 4712, worker);
  }
  void event(EventKind kind, Nanoseconds time, ProcessId process, std::optional<ThreadId> thread,
             int64_t value, std::string text) {
    Event event;
    event.kind = kind;
    event.time = time;
    event.process = process;
    event.thread = thread;
    event.value = value;
    event.text = std::move(text);
    profile.emit(event);
  }
  void at(ThreadId thread, const std::string& frames, Nanoseconds start, Nanoseconds wall) {
    Sample sample = maker.sample(thread, frames, wall);
    sample.start = start;
    maker.put(sample);
  }
  std::string leaf(const SignalPlace& place) const {
    return place.stack ? profile.frame(profile.stacks()[place.stack.value - 1].frame).function : "";
  }

  Profile profile;
  ProfileMaker maker{profile};
  ProcessId master, worker;
  ThreadId arbiter, request, other;
};

// The sample that ends with the event has the stack of that moment, and not the one that begins there.
TEST_F(Signals, have_the_places_of_sender_and_threads) {
  at(arbiter, "main;sleep", 0, 100 * kMs);
  at(arbiter, "main;murder", 100 * kMs, 1 * kMs);
  at(arbiter, "main;reap", 101 * kMs, 50 * kMs);
  at(request, "main;handle;slow", 0, 101 * kMs + 200);
  at(other, "run;wait", 0, 101 * kMs + 300);
  event(EventKind::signal_sent, 101 * kMs, master, arbiter, SIGKILL, "python3 (4711)");
  event(EventKind::signal_received, 101 * kMs, worker, {}, SIGKILL,
        "gunicorn (4700)" + std::string(kSignalEnds));
  event(EventKind::signal_delivered, 101 * kMs + 200, worker, request, SIGKILL, "");
  event(EventKind::signal_delivered, 101 * kMs + 300, worker, other, SIGKILL, "");
  event(EventKind::process_end, 102 * kMs, worker, {}, 0, "");
  const auto found = signals(profile);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].process, worker);
  EXPECT_EQ(found[0].sender, "gunicorn (4700)");
  EXPECT_EQ(found[0].from.thread, arbiter);
  EXPECT_EQ(leaf(found[0].from), "murder");
  EXPECT_EQ(found[0].outcome, Signal::Outcome::ended);
  EXPECT_EQ(found[0].ended_after, 1 * kMs);
  ASSERT_EQ(found[0].threads.size(), 2u);
  EXPECT_EQ(leaf(found[0].threads[0]), "slow");
  EXPECT_EQ(leaf(found[0].threads[1]), "wait");
}

// Of time that the host took, the capture cannot say that the thread ran. The sample then has no length, and
// is joined with the run after it.
TEST_F(Signals, are_in_a_run_and_not_in_the_wait_before_it) {
  maker.put(maker.blocked(arbiter, "main;sleep", 100 * kMs, 230));
  at(arbiter, "main;murder", ProfileMaker::kStart + 100 * kMs, kMs / 10);
  event(EventKind::signal_sent, ProfileMaker::kStart + 100 * kMs + 400, master, arbiter, SIGKILL,
        "python3 (4711)");
  event(EventKind::signal_received, ProfileMaker::kStart + 100 * kMs + 400, worker, {}, SIGKILL,
        "gunicorn (4700)");
  const auto found = signals(profile);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(leaf(found[0].from), "murder");
}

// The capture had no room for a sample: what the thread did before or after is not where it was.
TEST_F(Signals, without_a_sample_have_no_place) {
  at(arbiter, "main;sleep", 0, 100 * kMs);
  at(arbiter, "main;reap", 100 * kMs, 50 * kMs);
  at(request, "main;spin", 0, 150 * kMs);
  event(EventKind::signal_sent, 101 * kMs, master, arbiter, SIGABRT,
        "python3 (4711)" + std::string(kSignalUnseen));
  event(EventKind::signal_received, 101 * kMs, worker, {}, SIGABRT, "gunicorn (4700)");
  event(EventKind::signal_delivered, 102 * kMs, worker, request, SIGABRT,
        std::string(kSignalHandled) + std::string(kSignalUnseen));
  const auto found = signals(profile);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].from.thread, arbiter);
  EXPECT_EQ(leaf(found[0].from), "");
  EXPECT_EQ(found[0].outcome, Signal::Outcome::handled);
  ASSERT_EQ(found[0].threads.size(), 1u);
  EXPECT_EQ(found[0].threads[0].thread, request);
  EXPECT_EQ(leaf(found[0].threads[0]), "");
}

// A run so short that all of its time went to the wait before it has a sample without length.
TEST_F(Signals, are_not_in_the_time_before_a_sample) {
  at(request, "main;work", 0, 90 * kMs);
  at(request, "main;queued", 90 * kMs, 11 * kMs);
  Sample before = maker.sample(request, "main;wait", 11 * kMs);
  before.start = 90 * kMs;
  before.samples = 0;
  maker.put(before);
  at(request, "main;spin", 101 * kMs, 0);
  event(EventKind::signal_received, 100 * kMs, worker, {}, SIGKILL, "gunicorn (4700)");
  event(EventKind::signal_delivered, 101 * kMs + 500, worker, request, SIGKILL, "");
  const auto found = signals(profile);
  ASSERT_EQ(found.size(), 1u);
  ASSERT_EQ(found[0].threads.size(), 1u);
  EXPECT_EQ(leaf(found[0].threads[0]), "spin");
}

TEST_F(Signals, that_a_program_handles_do_not_take_the_threads_of_its_end) {
  event(EventKind::signal_received, 10 * kMs, worker, {}, SIGTERM, "bash (1)");
  event(EventKind::signal_delivered, 10 * kMs, worker, request, SIGTERM, std::string(kSignalHandled));
  event(EventKind::signal_delivered, 20 * kMs, worker, other, SIGKILL, "");  // as the program calls exit
  const auto found = signals(profile);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].outcome, Signal::Outcome::handled);
  EXPECT_EQ(found[0].threads.size(), 1u);
  EXPECT_EQ(found[0].ended_after, -1);
}

// The kernel gives each thread SIGKILL for it, in any order.
TEST_F(Signals, that_end_a_process_as_they_are_sent) {
  event(EventKind::signal_received, 10 * kMs, worker, {}, SIGTERM, "bash (1)" + std::string(kSignalEnds));
  event(EventKind::signal_delivered, 11 * kMs, worker, other, SIGKILL, "");
  event(EventKind::signal_delivered, 12 * kMs, worker, request, SIGKILL, "");
  const auto found = signals(profile);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].sender, "bash (1)");
  EXPECT_EQ(found[0].outcome, Signal::Outcome::ended);
  ASSERT_EQ(found[0].threads.size(), 2u);
  EXPECT_EQ(found[0].threads[0].thread, request);
}

// One thread is given the fault, the others end by SIGKILL; a signal of another process is none of it.
TEST_F(Signals, of_one_thread_end_the_others_too) {
  event(EventKind::signal_received, 10 * kMs, worker, {}, SIGSEGV, std::string(kSignalOwnFault));
  event(EventKind::signal_received, 11 * kMs, master, {}, SIGKILL, std::string(kSignalByKernel));
  event(EventKind::signal_delivered, 12 * kMs, worker, request, SIGSEGV, "");
  event(EventKind::signal_delivered, 13 * kMs, worker, other, SIGKILL, "");
  event(EventKind::signal_delivered, 14 * kMs, master, arbiter, SIGKILL, std::string(kSignalNoMemory));
  const auto found = signals(profile);
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].sent_by, Signal::Sender::own_fault);
  EXPECT_EQ(found[0].threads.size(), 2u);
  EXPECT_EQ(found[1].sent_by, Signal::Sender::kernel);
  EXPECT_TRUE(found[1].no_memory);
  ASSERT_EQ(found[1].threads.size(), 1u);
  EXPECT_EQ(found[1].threads[0].thread, arbiter);
}

TEST_F(Signals, to_two_processes_at_one_time_have_their_own_senders) {
  at(arbiter, "main;to_worker", 0, 10 * kMs);
  at(request, "main;to_master", 0, 10 * kMs);
  event(EventKind::signal_sent, 10 * kMs, worker, request, SIGABRT, "python3 (4700)");
  event(EventKind::signal_received, 10 * kMs, master, {}, SIGABRT, "python3 (4711)");
  event(EventKind::signal_sent, 10 * kMs, master, arbiter, SIGABRT, "python3 (4711)");
  event(EventKind::signal_received, 10 * kMs, worker, {}, SIGABRT, "python3 (4700)");
  const auto found = signals(profile);
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(leaf(found[0].from), "to_master");
  EXPECT_EQ(leaf(found[1].from), "to_worker");
}

TEST_F(Signals, of_a_process_that_is_not_in_the_recording_are_left_out) {
  event(EventKind::signal_received, 10 * kMs, ProcessId(77), {}, SIGKILL, "bash (1)");
  event(EventKind::signal_delivered, 10 * kMs, ProcessId(77), ThreadId(99), SIGKILL, "");
  EXPECT_TRUE(signals(profile).empty());
}

}  // namespace
}  // namespace phlox::view
