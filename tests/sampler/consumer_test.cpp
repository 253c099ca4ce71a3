#include "phlox/sampler/assemble/consumer.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <map>
#include <utility>

#include "phlox/profile/profile.h"
#include "phlox/python/layout_table.h"
#include "phlox/sampler/capture/code_cache.h"
#include "support/fake_interpreter.h"

namespace phlox::sampler {
namespace {

class Consumers : public testing::Test {
 protected:
  Consumers() {
    ThreadRecord thread;
    thread.thread = 1;
    push(thread);
  }

  void push(const auto& record, std::span<const CodeLocation> locations = {}) {
    ASSERT_TRUE(ring_.push(std::as_bytes(std::span(&record, 1)), std::as_bytes(locations)));
  }
  uint32_t send(const test::FakeCode& code) {
    snapshot_.capture();
    cache_.begin_sample();
    return cache_.find(fake_.make_code(code), snapshot_)->number;
  }
  void sample(std::vector<CodeLocation> locations) {
    ++samples_;
    ThreadSample record = sample_at(1, 1000 * samples_, 1000 * samples_ - 1000);
    record.stack.fresh = static_cast<uint32_t>(locations.size());
    push(record, locations);
  }
  std::string leaf() {
    identities_.spans.flush();
    return seen_.frame(seen_.stack(seen_.samples().back().stack).frame).function;
  }

  test::FakeInterpreter fake_{*python::find_layout(3, 12, {})};
  Ring ring_{size_t{1} << 20};
  Snapshot snapshot_{fake_.memory()};
  CodeCache cache_{fake_.layout(), fake_.memory(), ring_, {.codes = 4, .bytes = size_t{1} << 30}};
  profile::Profile seen_;
  Identities identities_{seen_};
  Consumer consumer_{fake_.layout(), profile::ProcessId(1), seen_, identities_, [](profile::Thread&) {}};
  Nanoseconds samples_ = 0;
};

TEST_F(Consumers, a_deadline_ends_a_drain_whatever_is_left) {
  const uint32_t f = send({.name = "f"});
  for (int i = 0; i < 1000; ++i) sample({{f, 0}, {f, i}});
  consumer_.drain(ring_, [] { return true; });
  EXPECT_NE(ring_.front().data(), nullptr);
  consumer_.discard(ring_);
  EXPECT_EQ(ring_.front().data(), nullptr);
  EXPECT_GT(consumer_.discarded(), 900U);
}

TEST_F(Consumers, what_it_has_to_forget_can_be_sent_again) {
  sample({{send({.name = "before"}), 0}});
  for (int i = 0; i < 5; ++i) send({.name = "f" + std::to_string(i)});
  const uint32_t again = send({.name = "after"});
  sample({{again, 0}});
  consumer_.drain(ring_);
  EXPECT_GT(cache_.generation(), 0U);
  EXPECT_EQ(leaf(), "after");
  EXPECT_EQ(ring_.waiting(), 0U) << "everything was taken";
}

TEST_F(Consumers, a_function_that_was_not_read_is_a_marker) {
  sample({{kNotRead, 0}});
  consumer_.drain(ring_);
  EXPECT_EQ(leaf().front(), '(');
}

// Woken, it waits for a CPU where it slept; what it ran before that was elsewhere.
TEST_F(Consumers, states_before_a_sample_are_the_kernels_account) {
  const CodeLocation nap{send({.name = "nap"}), 0}, work{send({.name = "work"}), 0};
  const auto saw = [&](Nanoseconds time, CodeLocation at, profile::CpuState state, Nanoseconds ran,
                       Nanoseconds queued) {
    ThreadSample record = sample_at(1, time, time - 10'000'000);
    record.state.cpu_state = state;
    record.time.ran = ran + queued;
    record.time.queued = queued;
    record.stack.fresh = 1;
    push(record, {&at, 1});
  };
  saw(10'000'000, nap, profile::CpuState::blocked, 0, 0);
  saw(20'000'000, nap, profile::CpuState::blocked, 4'000'000, 0);           // never seen running
  saw(30'000'000, work, profile::CpuState::running, 5'000'000, 2'000'000);  // slept on for 3 ms
  saw(40'000'000, work, profile::CpuState::running, 6'000'000, 0);  // slept on the way, or waited for a CPU
  consumer_.drain(ring_);
  consumer_.settle_all();
  identities_.spans.flush();
  std::map<std::pair<std::string, profile::CpuState>, Nanoseconds> wall;
  for (const auto& sample : seen_.samples()) {
    wall[{seen_.frame(seen_.stack(sample.stack).frame).function, sample.cpu_state}] += sample.wall;
  }
  using State = profile::CpuState;
  EXPECT_EQ((wall[{"nap", State::blocked}]), 10'000'000 + 6'000'000 + 3'000'000);
  EXPECT_EQ((wall[{"(ran between two samples)", State::running}]), 4'000'000);
  EXPECT_EQ((wall[{"work", State::running}]), 5'000'000 + 6'000'000);
  EXPECT_EQ((wall[{"work", State::runnable}]), 2'000'000);
  EXPECT_EQ((wall[{"work", State::unknown}]), 4'000'000);
}

// It lost its CPU there, which says nothing of where it had used it.
TEST_F(Consumers, a_thread_that_waits_for_a_cpu_ran_where_it_is_next_found_running) {
  const CodeLocation yields{send({.name = "yields"}), 0}, work{send({.name = "work"}), 0};
  Nanoseconds time = 0;
  const auto saw = [&](CodeLocation at, profile::CpuState state, bool elsewhere) {
    ThreadSample record = sample_at(1, time + 10'000'000, time);
    time += 10'000'000;
    record.state.cpu_state = state;
    record.state.ran_elsewhere = elsewhere;
    record.time.ran = record.time.wall;
    record.time.queued = record.time.wall - 4'000'000;
    record.stack.fresh = 1;
    push(record, {&at, 1});
  };
  saw(yields, profile::CpuState::runnable, true);
  saw(work, profile::CpuState::running, false);
  // Where that is not known.
  saw(yields, profile::CpuState::runnable, false);
  for (int i = 0; i < 100; ++i) saw(yields, profile::CpuState::runnable, true);
  consumer_.drain(ring_);
  consumer_.settle_all();
  identities_.spans.flush();
  std::map<std::pair<std::string, profile::CpuState>, Nanoseconds> wall;
  for (const auto& sample : seen_.samples())
    wall[{seen_.frame(seen_.stack(sample.stack).frame).function, sample.cpu_state}] += sample.wall;
  using State = profile::CpuState;
  EXPECT_EQ((wall[{"work", State::running}]), 8'000'000);
  EXPECT_EQ((wall[{"work", State::runnable}]), 2'000'000);
  EXPECT_EQ((wall[{"yields", State::running}]), 4'000'000);
  // It is not found running for long: some is not kept for such a sample.
  EXPECT_NEAR(static_cast<double>(wall[{"(ran between two samples)", State::running}]), 400e6, 251e6);
  Nanoseconds whole = 0;
  for (const auto& [key, part] : wall) whole += part;
  EXPECT_EQ(whole, time);
}

// A very deep stack is cut; where the thread ran before it went to sleep there is not known.
TEST_F(Consumers, time_whose_stack_is_not_known_is_not_cut) {
  const CodeLocation nap{send({.name = "nap"}), 0};
  ThreadSample record = sample_at(1, 10'000'000, 0);
  record.state.cpu_state = profile::CpuState::blocked;
  record.state.quality = profile::Quality::cut;
  record.time.ran = 4'000'000;
  record.time.queued = 0;
  record.stack.fresh = 1;
  push(record, {&nap, 1});
  ThreadSample rest = sample_at(1, 20'000'000, 10'000'000);
  rest.state.cpu_state = profile::CpuState::blocked;
  rest.state.quality = profile::Quality::cut;
  rest.time.samples = 0;
  rest.time.cpu = 1'000'000;
  rest.stack.keep = 1;
  push(rest, {});
  consumer_.drain(ring_);
  consumer_.settle_all();
  identities_.spans.flush();
  std::map<std::pair<std::string, profile::Quality>, int> rows;
  for (const auto& sample : seen_.samples())
    ++rows[{seen_.frame(seen_.stack(sample.stack).frame).function, sample.quality}];
  using profile::Quality;
  EXPECT_EQ((rows[{"(ran between two samples)", Quality::ok}]), 2);
  EXPECT_EQ((rows[{"(ran between two samples)", Quality::cut}]), 0);
  EXPECT_EQ((rows[{"nap", Quality::cut}]), 1);
}

// The kernel counts a wait for a CPU when it is over: a sample later.
TEST_F(Consumers, a_wait_for_a_cpu_that_is_counted_later_is_reported_as_one) {
  const CodeLocation work{send({.name = "work"}), 0};
  const auto saw = [&](Nanoseconds time, Nanoseconds ran, Nanoseconds queued) {
    ThreadSample record = sample_at(1, time, time - 10'000'000);
    record.state.cpu_state = profile::CpuState::running;
    record.time.ran = ran + queued;
    record.time.queued = queued;
    record.stack.fresh = 1;
    push(record, {&work, 1});
  };
  saw(10'000'000, 10'000'000, 0);
  saw(20'000'000, 6'000'000, 0);  // off its CPU for 4 ms
  saw(30'000'000, 9'000'000, 4'000'000);
  saw(40'000'000, 7'000'000, 0);  // 3 ms
  saw(50'000'000, 10'000'000, 2'000'000);
  push(ThreadEndRecord{.thread = 1, .time = 50'000'000});
  consumer_.drain(ring_);
  identities_.spans.flush();
  std::map<profile::CpuState, Nanoseconds> wall;
  Nanoseconds until = 0;
  for (const auto& sample : seen_.samples()) {
    wall[sample.cpu_state] += sample.wall;
    EXPECT_GE(sample.start, until);
    until = sample.start + sample.wall;
  }
  using State = profile::CpuState;
  EXPECT_EQ(wall[State::running], 42'000'000);
  EXPECT_EQ(wall[State::runnable], 6'000'000);
  EXPECT_EQ(wall[State::unknown], 2'000'000);
  EXPECT_EQ(until, 50'000'000);
}

// Time queued for a CPU, or -1: of --native it is not known.
class WaitTargets : public Consumers, public testing::WithParamInterface<Nanoseconds> {};
INSTANTIATE_TEST_SUITE_P(Both, WaitTargets, testing::Values(0, -1));

// The wait that a sample found may have been over right after it.
TEST_P(WaitTargets, time_before_a_sample_has_none_of_the_sample_before) {
  WaitTargetFiles::Host host;
  WaitTargetFiles files(::getpid(), host, [](int) { return ""; });
  consumer_.with_wait_targets(files);
  const CodeLocation nap{send({.name = "nap"}), 0}, work{send({.name = "work"}), 0};
  const auto saw = [&](Nanoseconds time, CodeLocation at, profile::CpuState state, Nanoseconds ran) {
    ThreadSample record = sample_at(1, time, time - 10'000'000);
    record.state.cpu_state = state;
    record.time.ran = ran;
    record.time.queued = GetParam();
    record.stack.fresh = 1;
    if (state == profile::CpuState::blocked) {
      record.state.waits_for = {.kind = process::WaitsFor::Kind::time};
      record.time.wait_since = time;
    }
    push(record, {&at, 1});
  };
  saw(10'000'000, nap, profile::CpuState::blocked, 0);
  saw(20'000'000, work, profile::CpuState::running, 4'000'000);
  saw(30'000'000, nap, profile::CpuState::blocked, 5'000'000);
  consumer_.drain(ring_);
  identities_.spans.flush();
  std::vector<std::pair<Nanoseconds, bool>> waits;  // length, whether its target is known
  for (const auto& sample : seen_.samples()) {
    if (sample.cpu_state == profile::CpuState::blocked)
      waits.emplace_back(sample.wall, bool(sample.wait_target));
    else
      EXPECT_FALSE(sample.wait_target);
  }
  EXPECT_EQ(waits, (std::vector<std::pair<Nanoseconds, bool>>{
                       {10'000'000, true}, {6'000'000, false}, {5'000'000, true}}));
}

// A new thread is in the kernel's list before it has a thread state: with --native it is met without one.
TEST_F(Consumers, a_thread_that_meets_python_later_stays_one_row) {
  const auto begin = [&](uint32_t number, uint64_t python_id) {
    ThreadRecord record;
    record.thread = number;
    record.tid = 7;
    record.python_id = python_id;
    record.time = 1000 * number;
    push(record);
  };
  const auto sample_of = [&](uint32_t number, Nanoseconds time) {
    push(sample_at(number, time, time - 1000));
  };
  begin(2, 0);
  sample_of(2, 3000);
  begin(3, 99);
  sample_of(2, 4000);
  ThreadEndRecord end;
  end.thread = 2;
  push(end);
  sample_of(3, 5000);
  consumer_.drain(ring_);
  identities_.spans.flush();
  ASSERT_EQ(seen_.threads().size(), 2U) << "with the one of the fixture";
  EXPECT_EQ(seen_.threads()[1].python_id, 99U);
  EXPECT_EQ(seen_.threads()[1].start, 2000);
  EXPECT_EQ(consumer_.live_threads().size(), 2U);
  Nanoseconds wall = 0;
  for (const auto& sample : seen_.samples()) {
    EXPECT_EQ(sample.thread, profile::ThreadId(2));
    wall += sample.wall;
  }
  EXPECT_EQ(wall, 3000);
}

// A table is searched from its start: a stack of many instructions of a function of a million lines would
// keep the recorder for minutes.
// A process's first thread, sampled once, with the CPU time that it had used at its end.
class Ends : public Consumers {
 protected:
  Nanoseconds charged(Nanoseconds used_before, std::optional<Nanoseconds> used_at_end) {
    consumer_.with_end(7, [=] { return used_at_end; });
    ThreadRecord begin;
    begin.thread = 2;
    begin.tid = 7;
    begin.used = used_before;
    push(begin);
    ThreadSample sample = sample_at(2, kSecond, 0);
    sample.time.cpu = 900'000;
    sample.state.cpu_state = profile::CpuState::blocked;
    sample.stack.fresh = 1;
    const CodeLocation location{send({.name = "f"}), 0};
    push(sample, {&location, 1});
    if (rejected_until_ > 0) {
      ThreadSample rejected = sample_at(2, rejected_until_, kSecond);
      rejected.state.quality = profile::Quality::rejected;
      rejected.state.rejected = Rejected::moved;
      push(rejected);
    }
    ThreadEndRecord end;
    end.thread = 2;
    end.time = 2 * kSecond;
    push(end);
    consumer_.drain(ring_);
    identities_.spans.flush();
    Nanoseconds cpu = 0;
    for (const auto& row : seen_.samples()) cpu += row.cpu;
    return cpu;
  }
  Nanoseconds rejected_until_ = 0;  // 0: no sample is
};

TEST_F(Ends, what_was_used_after_the_last_sample_is_of_its_stack) {
  EXPECT_EQ(charged(5'000, 5'000 + 900'000 + 700'000), 1'600'000);
  ASSERT_EQ(seen_.samples().size(), 2U);
  const auto& rest = seen_.samples()[1];
  EXPECT_EQ(rest.stack, seen_.samples()[0].stack);
  EXPECT_EQ(rest.start, kSecond);
  EXPECT_EQ(rest.wall, 700'000);
  EXPECT_EQ(rest.samples, 0U) << "it is no sample";
  EXPECT_EQ(rest.cpu_state, profile::CpuState::running);
}

TEST_F(Ends, what_was_used_after_a_rejected_sample_is_of_no_stack_and_of_no_time_that_has_a_row) {
  rejected_until_ = kSecond + 8'000'000;
  EXPECT_EQ(charged(5'000, 5'000 + 900'000 + 700'000), 1'600'000);
  ASSERT_EQ(seen_.samples().size(), 3U);
  const auto &rejected = seen_.samples()[1], &rest = seen_.samples()[2];
  EXPECT_EQ(rejected.quality, profile::Quality::rejected);
  EXPECT_EQ(rest.start, rejected.start + rejected.wall);
  EXPECT_EQ(rest.wall, 700'000);
  EXPECT_EQ(rest.quality, profile::Quality::ok);
  EXPECT_EQ(seen_.frame(seen_.stack(rest.stack).frame).function, "(ran between two samples)");
}

TEST_F(Ends, of_one_that_is_gone_already_there_is_what_was_seen) {
  EXPECT_EQ(charged(0, {}), 900'000);
}

TEST_F(Ends, where_it_is_not_known_what_it_had_used_before_there_is_what_was_seen) {
  EXPECT_EQ(charged(-1, 5'000'000), 900'000);
}

TEST_F(Ends, a_process_that_used_more_did_other_things_too) {
  EXPECT_EQ(charged(0, kSecond), 900'000);
}

TEST_F(Ends, what_a_program_used_until_its_python_was_up_is_of_no_function) {
  consumer_.with_start(100);
  EXPECT_EQ(charged(5'000, 5'000 + 900'000), 905'000);
  ASSERT_EQ(seen_.samples().size(), 2U);
  const auto& before = seen_.samples()[0];
  EXPECT_EQ(before.cpu, 5'000);
  EXPECT_EQ(before.start, 100);
  EXPECT_EQ(before.samples, 0U) << "it is no sample";
  EXPECT_NE(before.stack, seen_.samples()[1].stack);
  EXPECT_EQ(seen_.threads().back().start, 100);
}

TEST_F(Ends, one_without_a_sample_has_what_it_used) {
  consumer_.with_end(7, {});
  consumer_.put_unseen(kSecond, 2 * kSecond, 20'000'000);
  identities_.spans.flush();
  ASSERT_EQ(seen_.samples().size(), 1U);
  EXPECT_EQ(seen_.samples()[0].cpu, 20'000'000);
  EXPECT_EQ(leaf().front(), '(');
  ASSERT_EQ(seen_.threads().size(), 1U);
  EXPECT_EQ(seen_.threads()[0].tid, 7);
}

// A supervisor that ends many processes is in the recording each time; a flood to one process is not.
TEST_F(Consumers, the_first_signals_to_each_process_are_kept_and_a_flood_is_cut_short) {
  const auto sent = [&](pid_t to) {
    SignalRecord record;
    record.thread = 1;
    record.time = ++samples_ * 1'000'000;
    record.what = SignalRecord::What::sent;
    record.signal = SIGKILL;
    record.other = to;
    push(record);
    consumer_.drain(ring_);
  };
  sent(999);
  const size_t before = seen_.events().size();
  for (pid_t to = 1000; to < 3000; ++to) sent(to);
  EXPECT_EQ(seen_.events().size() - before, 2000U);
  for (int i = 0; i < 20'000; ++i) sent(4000);
  EXPECT_LT(seen_.events().size(), 2500U);
  sent(4001);
  EXPECT_TRUE(seen_.events().back().text.ends_with("(4001)"));
}

TEST_F(Consumers, lines_are_searched_for_so_long_and_the_rest_is_counted) {
  const uint32_t f = send({.name = "f", .instructions = 500'000});
  std::vector<CodeLocation> locations;
  for (int i = 0; i < 300; ++i) locations.push_back({f, 2 * i});
  sample(locations);
  consumer_.drain(ring_);
  EXPECT_GT(consumer_.without_line(), 0U);
  EXPECT_LT(consumer_.without_line(), 300U);
}

}  // namespace
}  // namespace phlox::sampler
