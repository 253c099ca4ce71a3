// How threads are held, which are sampled, and which holds the GIL: turns of a ProcessSampler
// over an interpreter in memory, whose threads are real ones.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <map>
#include <thread>

#include "phlox/profile/profile.h"
#include "phlox/python/layout_table.h"
#include "phlox/sampler/assemble/consumer.h"
#include "phlox/sampler/capture/process_sampler.h"
#include "support/fake_interpreter.h"
#include "support/sleeping_thread.h"

namespace phlox::sampler {
namespace {

using profile::CpuState;
using profile::GilState;
using profile::Quality;

// The fake's memory; a test may change it after each read.
class ChangingMemory : public memory::RemoteMemory {
 public:
  explicit ChangingMemory(test::FakeMemory& memory) : memory_(memory) {}
  size_t read(std::span<const memory::Range> ranges) override {
    const size_t got = memory_.read(ranges);
    if (after_read) after_read(ranges);
    return got;
  }
  using RemoteMemory::read;
  std::function<void(std::span<const memory::Range>)> after_read;

 private:
  test::FakeMemory& memory_;
};

class Holding : public testing::Test {
 protected:
  Holding() {
    config_.pid = ::getpid();
    fake_.thread().calls("main").calls("work");
  }
  void is_run_by(const test::FakeThread& thread, pid_t tid) {
    fake_.set(thread.state(), layout_.thread.native_thread_id, static_cast<uint64_t>(tid));
  }
  // So many turns, a millisecond apart as far as the sampler knows. In a thread of its own: it goes to the
  // CPUs of those that it reads.
  void take_turns(int turns, std::vector<int> kept_free = {}) {
    Ring ring(1 << 22);
    std::thread([&] {
      Workers workers(std::move(kept_free));
      ProcessSampler sampler(config_, interpreter_, memory_, ring, workers);
      Nanoseconds now = clock_now();
      for (int i = 0; i < turns; ++i) sampler.turn(now += kTurn, workers.begin_turn());
      sampler.finish(now);
      counts_ = sampler.counts();
    }).join();
    Identities identities(seen_);
    Consumer consumer(layout_, profile::ProcessId(1), seen_, identities, [](profile::Thread&) {});
    consumer.drain(ring);
    identities.spans.flush();
  }
  const std::vector<profile::Sample>& samples() const { return seen_.samples(); }
  bool any(auto&& that) const { return std::any_of(samples().begin(), samples().end(), that); }
  bool all(auto&& that) const {
    return !samples().empty() && std::all_of(samples().begin(), samples().end(), that);
  }
  std::string leaf(const profile::Sample& sample) const {
    return sample.stack ? seen_.frame(seen_.stack(sample.stack).frame).qualified_name : "";
  }
  // Each sample was taken in work. What the thread ran while no sample found it running is no function's.
  bool all_at_work(Quality quality) const {
    return all([&](const profile::Sample& s) {
      return s.quality == quality &&
             leaf(s) == (s.samples > 0 || s.cpu == 0 ? "work" : "(ran between two samples)");
    });
  }

  static constexpr Nanoseconds kTurn = kSecond / 1000;
  const python::Layout& layout_ = *python::find_layout(3, 12, {});
  test::FakeInterpreter fake_{layout_};
  ChangingMemory memory_{fake_.memory()};
  python::Interpreter interpreter_ = fake_.interpreter();
  ProcessSampler::Config config_;
  profile::Profile seen_;
  Counts counts_;
};

TEST_F(Holding, a_blocked_thread_is_read_in_place_in_every_mode) {
  test::SleepingThread asleep;
  is_run_by(fake_.thread(), asleep.tid());
  for (const Mode mode : {Mode::automatic, Mode::same_cpu, Mode::ptrace, Mode::hands_off}) {
    config_.mode = mode;
    take_turns(3);
    EXPECT_EQ(counts_.stops, 0U);
  }
  EXPECT_TRUE(all([&](const auto& s) {
    return s.quality == Quality::ok && s.cpu_state == CpuState::blocked && leaf(s) == "work";
  }));
}

// Of the ordinary class we get its CPU, but not always for long enough.
TEST_F(Holding, a_running_thread_does_not_run_while_we_have_its_cpu) {
  const test::SpinningProcess busy;
  config_.pid = busy.pid();
  is_run_by(fake_.thread(), busy.pid());
  take_turns(30);
  EXPECT_EQ(counts_.stops, 0U);
  EXPECT_GE(counts_.migrations, 1U);
  EXPECT_TRUE(any([&](const auto& s) { return s.quality == Quality::ok && leaf(s) == "work"; }));
  EXPECT_TRUE(all([&](const auto& s) { return s.quality == Quality::ok || s.quality == Quality::rejected; }));
  EXPECT_TRUE(busy.runs_on());
}

TEST_F(Holding, by_ptrace_a_running_thread_is_stopped_and_runs_on) {
  const test::SpinningProcess busy;
  config_.pid = busy.pid();
  config_.mode = Mode::ptrace;
  is_run_by(fake_.thread(), busy.pid());
  // After a stop it may not have its CPU back when the next turn comes, and then it is not stopped again.
  take_turns(30);
  EXPECT_GE(counts_.stops, 1U);
  EXPECT_EQ(counts_.stop_refused, 0U);
  // After a stop it waits for its CPU, maybe at each sample.
  EXPECT_TRUE(all_at_work(Quality::ok));
  EXPECT_TRUE(busy.runs_on());
}

TEST_F(Holding, hands_off_nothing_is_proved_and_no_thread_is_disturbed) {
  const test::SpinningProcess busy;
  config_.pid = busy.pid();
  config_.mode = Mode::hands_off;
  is_run_by(fake_.thread(), busy.pid());
  take_turns(5);
  EXPECT_EQ(counts_.stops, 0U);
  EXPECT_EQ(counts_.migrations, 0U);
  EXPECT_TRUE(all_at_work(Quality::unproved));
}

TEST_F(Holding, on_a_cpu_that_we_may_not_enter_it_is_stopped_unless_that_was_ruled_out) {
  const test::SpinningProcess busy;
  config_.pid = busy.pid();
  is_run_by(fake_.thread(), busy.pid());
  const auto every_cpu = Workers().common_cpus(busy.pid());
  take_turns(30, every_cpu);
  EXPECT_GE(counts_.cpu_refused, 1U);
  EXPECT_EQ(counts_.stops, counts_.cpu_refused);
  EXPECT_TRUE(all([](const auto& s) { return s.quality == Quality::ok; }));
  seen_ = {};
  config_.mode = Mode::same_cpu;
  take_turns(30, every_cpu);
  EXPECT_GE(counts_.cpu_refused, 1U);
  EXPECT_EQ(counts_.stops, 0U);
  EXPECT_TRUE(all([](const auto& s) { return s.quality == Quality::unproved; }));
}

TEST_F(Holding, a_thread_that_has_ended_is_gone_and_the_others_are_read) {
  test::SleepingThread asleep;
  is_run_by(fake_.thread(), asleep.tid());
  test::FakeThread& other = fake_.new_thread();
  other.calls("run");
  auto ends = std::make_unique<test::SleepingThread>();
  is_run_by(other, ends->tid());
  int turns = 0;
  config_.on_stack = [&](uint32_t, std::span<const python::RawFrame>) {
    if (++turns == 3) ends.reset();
  };
  take_turns(6);
  ASSERT_EQ(seen_.threads().size(), 2U);
  Nanoseconds stayed = 0;
  for (const auto& s : samples()) {
    if (seen_.thread(s.thread).tid == asleep.tid()) stayed += s.wall;
  }
  EXPECT_EQ(stayed, 5 * kTurn) << "from the turn that found it on";
}

// The holder that was scouted has given the GIL away when the memory is copied.
TEST_F(Holding, the_gil_goes_to_another_between_asking_and_copying) {
  test::SleepingThread first, second;
  is_run_by(fake_.thread(), first.tid());
  test::FakeThread& other = fake_.new_thread();
  other.calls("run").calls("next");
  is_run_by(other, second.tid());
  fake_.hold_gil(&fake_.thread());
  bool holder_was_read = false, handed_over = false;
  config_.on_stack = [&](uint32_t, std::span<const python::RawFrame> frames) {
    holder_was_read = holder_was_read || frames.size() > 0;
  };
  memory_.after_read = [&](auto) {
    // After the first read of the next turn, which is the one that asks for the holder.
    if (handed_over || !holder_was_read) return;
    handed_over = true;
    first.wakes();
    fake_.hold_gil(&other);
  };
  take_turns(4);
  EXPECT_TRUE(handed_over);
  std::map<std::string, int> holds;
  for (const auto& s : samples()) {
    if (s.gil_state == GilState::holds) holds[leaf(s)] += static_cast<int>(s.samples);
    EXPECT_EQ(s.quality, Quality::ok);
  }
  EXPECT_EQ(holds["work"], 1) << "until it gave it away";
  EXPECT_GE(holds["next"], 1);
}

// The GIL changes hands at every read: the named holder is never the one that is held.
TEST_F(Holding, a_gil_that_never_stays_is_nobodys_and_the_turn_ends) {
  test::SleepingThread first, second;
  is_run_by(fake_.thread(), first.tid());
  test::FakeThread& other = fake_.new_thread();
  other.calls("run");
  is_run_by(other, second.tid());
  bool turn = false;
  memory_.after_read = [&](auto) { fake_.hold_gil((turn = !turn) ? &other : &fake_.thread()); };
  take_turns(6);
  EXPECT_EQ(seen_.threads().size(), 2U);
  EXPECT_TRUE(all([](const auto& s) { return s.quality == Quality::ok; }));
}

TEST_F(Holding, of_many_threads_each_gets_its_samples) {
  constexpr size_t kThreads = 150;  // a turn samples fewer
  constexpr int kTurns = 80;
  std::vector<std::unique_ptr<test::SleepingThread>> sleeping;
  for (size_t i = 0; i < kThreads; ++i) {
    sleeping.push_back(std::make_unique<test::SleepingThread>());
    test::FakeThread& thread = i == 0 ? fake_.thread() : fake_.new_thread();
    if (i > 0) thread.calls("run");
    is_run_by(thread, sleeping.back()->tid());
  }
  config_.longest_turn = kSecond;
  take_turns(kTurns);
  ASSERT_EQ(seen_.threads().size(), kThreads);
  std::map<int32_t, Nanoseconds> walls;
  for (const auto& s : samples()) {
    EXPECT_EQ(s.quality, Quality::ok);
    walls[seen_.thread(s.thread).tid] += s.wall;
  }
  ASSERT_EQ(walls.size(), kThreads);
  const auto by_wall = [](const auto& a, const auto& b) { return a.second < b.second; };
  const auto least = std::min_element(walls.begin(), walls.end(), by_wall);
  // Ten turns until all are known, and a thread that never runs is left alone for sixteen at the most.
  EXPECT_GE(least->second, (kTurns - 10 - 3 * 16) * kTurn);
}

}  // namespace
}  // namespace phlox::sampler
