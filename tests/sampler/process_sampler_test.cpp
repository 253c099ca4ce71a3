#include "phlox/sampler/capture/process_sampler.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <future>
#include <thread>

#include "phlox/profile/profile.h"
#include "phlox/python/layout_table.h"
#include "phlox/sampler/assemble/consumer.h"
#include "support/fake_interpreter.h"
#include "support/layout_rows.h"
#include "support/sleeping_thread.h"

namespace phlox::sampler {
namespace {

using profile::Quality;
using test::SleepingThread;

// The rows whose thread states point to a CFrame on the C stack: 3.11 and 3.12.
class CFrames : public testing::TestWithParam<const python::Layout*> {
 protected:
  const python::Layout& layout() const { return *GetParam(); }

  // The names of the thread's stack at one sample, root first, and how good it is.
  struct Seen {
    std::vector<std::string> names;
    Quality quality = Quality::rejected;
  };
  Seen sample(std::optional<Nanoseconds> longest_stack = {}) {
    fake_.set(fake_.thread().state(), layout().thread.native_thread_id, static_cast<uint64_t>(asleep_.tid()));
    Ring ring(1 << 20);
    profile::Profile seen;
    Identities identities(seen);
    Consumer consumer(layout(), profile::ProcessId(1), seen, identities, [](profile::Thread&) {});
    ProcessSampler::Config config;
    config.pid = ::getpid();
    config.longest_stack = longest_stack;
    config.on_stack = [this](uint32_t, std::span<const python::RawFrame> frames) { walked_ = frames.size(); };
    const python::Interpreter interpreter = fake_.interpreter();
    Workers workers;
    ProcessSampler sampler(config, interpreter, fake_.memory(), ring, workers);
    sampler.turn(clock_now(), workers.begin_turn());
    sampler.flush();
    consumer.drain(ring);
    identities.spans.flush();
    Seen result;
    if (seen.samples().size() != 1) {
      ADD_FAILURE() << seen.samples().size() << " samples";
      return result;
    }
    const profile::Sample& sample = seen.samples().front();
    result.quality = sample.quality;
    if (sample.quality != Quality::rejected) {
      EXPECT_EQ(sample.cpu_state, profile::CpuState::blocked);
    }
    for (profile::StackId at = sample.stack; at; at = seen.stack(at).parent) {
      result.names.insert(result.names.begin(), seen.frame(seen.stack(at).frame).qualified_name);
    }
    return result;
  }

  RemoteAddress cframe() {
    return RemoteAddress(fake_.memory().get<uint64_t>(field(layout().thread.cframe)));
  }
  RemoteAddress field(python::Offset offset) { return fake_.thread().state() + *offset; }

  test::FakeInterpreter fake_{*GetParam()};
  SleepingThread asleep_;
  size_t walked_ = 0;  // frames of the last stack
};

// The first sample does not know yet what a frame takes.
TEST_P(CFrames, where_a_sample_may_take_only_so_long_a_deep_stack_is_cut_at_the_root_and_says_so) {
  fake_.thread().calls("main").calls("outside").enters("inside");
  for (int i = 0; i < 17'000; ++i) fake_.thread().calls("recursion");
  const Seen whole = sample();
  EXPECT_GT(walked_, 17'000U);
  ASSERT_FALSE(whole.names.empty());
  EXPECT_EQ(whole.names.front(), "main");
  const Seen cut = sample(kSecond);
  EXPECT_LT(walked_, 17'000U);
  EXPECT_EQ(cut.quality, Quality::cut);
  ASSERT_GT(cut.names.size(), 1000U) << "the evaluation that is walked is not taken for an unpublished one";
  EXPECT_EQ(cut.names.back(), "recursion");
  EXPECT_EQ(cut.names.front().front(), '(') << "frames are left out, and it is said: " << cut.names.front();
}

TEST_P(CFrames, a_stack_is_read) {
  fake_.thread().calls("main").calls("work").enters("callback");
  const Seen seen = sample();
  EXPECT_EQ(seen.names, (std::vector<std::string>{"main", "work", "callback"}));
  EXPECT_EQ(seen.quality, Quality::ok);
}

// gen_send_ex2 and the interpreter loop clear a generator's `previous` while it is still current_frame
// (3.12).
TEST_P(CFrames, a_detached_generator_of_the_outermost_evaluation_is_kept_and_marked) {
  fake_.thread().calls("main").resumes("numbers");
  fake_.set(fake_.thread().stack().front().address, layout().frame.previous, uint64_t{0});
  const Seen seen = sample();
  EXPECT_EQ(seen.quality, Quality::detached);
  ASSERT_EQ(seen.names.size(), 2U) << "never an empty stack that passes for a whole one";
  EXPECT_EQ(seen.names[1], "numbers");
  EXPECT_EQ(seen.names[0].front(), '(') << "who called it is not known, and said so: " << seen.names[0];
}

// A C function calls Python: its evaluation's CFrame is published before current_frame is set in it, and what
// lies there is an old frame. The evaluation outside it is what ran.
TEST_P(CFrames, an_evaluation_that_is_not_published_yet_gives_the_one_outside_it) {
  fake_.thread().calls("main").calls("work");
  const auto outside = fake_.thread().stack();
  fake_.thread().enters("callback");
  const RemoteAddress inner = cframe();
  // Left over from an evaluation that has ended: a chain of its own that leads nowhere near `work`.
  const RemoteAddress left_over = fake_.memory().allocate(256);
  std::vector<std::byte> bytes(128);
  const RemoteAddress callback = fake_.thread().stack().front().address;
  const std::byte* frame = fake_.memory().find(callback, bytes.size());
  bytes.assign(frame, frame + bytes.size());
  fake_.memory().put(left_over, bytes);
  fake_.set(left_over, layout().frame.previous, uint64_t{0});
  fake_.set(inner, layout().cframe.current_frame, left_over);
  const Seen seen = sample();
  EXPECT_EQ(seen.names, (std::vector<std::string>{"main", "work"}));
  EXPECT_EQ(seen.quality, Quality::ok);
}

TEST_P(CFrames,
       an_evaluation_that_is_not_published_yet_and_has_nothing_in_its_place_gives_the_one_outside_it) {
  fake_.thread().calls("main").calls("work").enters("callback");
  fake_.set(cframe(), layout().cframe.current_frame, uint64_t{0});
  EXPECT_EQ(sample().names, (std::vector<std::string>{"main", "work"}));
}

// The compiler may have put off both words of the CFrame.
TEST_P(CFrames, garbage_in_a_cframe_is_no_thread_without_python) {
  fake_.thread().calls("main").calls("work").enters("callback");
  const RemoteAddress zeros = fake_.memory().allocate(256);
  fake_.set(cframe(), layout().cframe.current_frame, zeros);
  fake_.set(cframe(), layout().cframe.previous, uint64_t{0});
  EXPECT_EQ(sample().quality, Quality::rejected);
}

// Until it starts, a thread's state has the ids of the thread that made it (3.11's init_threadstate()).
TEST_P(CFrames, a_state_with_the_ids_of_its_maker_is_not_another_of_its_threads) {
  fake_.thread().calls("main").calls("start");
  const auto is_run_by = [&](const test::FakeThread& thread, uint64_t python_id, pid_t tid) {
    fake_.set(thread.state(), layout().thread.thread_id, python_id);
    fake_.set(thread.state(), layout().thread.native_thread_id, static_cast<uint64_t>(tid));
  };
  is_run_by(fake_.thread(), fake_.thread().python_id(), asleep_.tid());
  Ring ring(1 << 20);
  ProcessSampler::Config config;
  config.pid = ::getpid();
  const python::Interpreter interpreter = fake_.interpreter();
  Workers workers;
  ProcessSampler sampler(config, interpreter, fake_.memory(), ring, workers);
  constexpr Nanoseconds kSecond = 1'000'000'000;
  Nanoseconds now = clock_now();
  const auto turns = [&] {
    for (int i = 0; i < 3; ++i) sampler.turn(now += kSecond, workers.begin_turn());
  };
  turns();
  test::FakeThread& fresh = fake_.new_thread();
  const uint64_t own_id = fresh.python_id();
  is_run_by(fresh, fake_.thread().python_id(), asleep_.tid());
  turns();
  SleepingThread started;
  is_run_by(fresh, own_id, started.tid());
  fresh.calls("run");
  turns();
  sampler.flush();

  profile::Profile seen;
  Identities identities(seen);
  Consumer consumer(layout(), profile::ProcessId(1), seen, identities, [](profile::Thread&) {});
  consumer.drain(ring);
  identities.spans.flush();
  ASSERT_EQ(seen.threads().size(), 2u);
  EXPECT_EQ(seen.threads()[0].tid, asleep_.tid());
  EXPECT_EQ(seen.threads()[1].tid, started.tid());
}

// Threads of Rust and C++ have a state for as long as one call into Python.
TEST(Fresh, a_state_that_holds_the_gil_is_read_in_the_turn_that_finds_it) {
  const python::Layout& layout = *python::find_layout(3, 12, {});
  test::FakeInterpreter fake(layout);
  fake.thread().calls("main");
  SleepingThread asleep, visitor;
  fake.set(fake.thread().state(), layout.thread.native_thread_id, static_cast<uint64_t>(asleep.tid()));
  Ring ring(1 << 20);
  ProcessSampler::Config config;
  config.pid = ::getpid();
  const python::Interpreter interpreter = fake.interpreter();
  Workers workers;
  ProcessSampler sampler(config, interpreter, fake.memory(), ring, workers);
  const Nanoseconds first = clock_now();
  sampler.turn(first, workers.begin_turn());
  test::FakeThread& fresh = fake.new_thread();
  fake.set(fresh.state(), layout.thread.native_thread_id, static_cast<uint64_t>(visitor.tid()));
  fresh.calls("visited");
  fake.hold_gil(&fresh);
  // Too soon for the list to be read again without a reason.
  sampler.turn(first + 1'000'000, workers.begin_turn());
  sampler.flush();

  profile::Profile seen;
  Identities identities(seen);
  Consumer consumer(layout, profile::ProcessId(1), seen, identities, [](profile::Thread&) {});
  consumer.drain(ring);
  identities.spans.flush();
  std::vector<std::string> leaves;
  for (const profile::Sample& sample : seen.samples()) {
    if (seen.thread(sample.thread).tid == visitor.tid())
      leaves.push_back(seen.frame(seen.stack(sample.stack).frame).qualified_name);
  }
  EXPECT_EQ(leaves, (std::vector<std::string>{"visited"}));
}

// The thread that ran last is sampled first, and the copy of the memory made for it serves the others. When
// it has ended meanwhile there is no copy, and that of the turn before shows where the others were then.
TEST(FreeThreaded, no_stack_is_taken_from_the_copy_of_an_earlier_turn) {
  const python::Layout& layout = *python::find_layout(3, 13, {.free_threaded = true});
  test::FakeInterpreter fake(layout);
  fake.thread().calls("main").calls("spin");
  test::FakeThread& other = fake.new_thread();
  other.calls("run").calls("earlier");

  std::atomic<bool> end = false;
  std::promise<pid_t> started;
  std::thread spinner([&] {
    started.set_value(::gettid());
    while (!end) {
    }
  });
  SleepingThread asleep;
  const auto is_run_by = [&](const test::FakeThread& thread, pid_t tid) {
    fake.set(thread.state(), layout.thread.native_thread_id, static_cast<uint64_t>(tid));
  };
  is_run_by(fake.thread(), started.get_future().get());
  is_run_by(other, asleep.tid());

  Ring ring(1 << 20);
  ProcessSampler::Config config;
  config.pid = ::getpid();
  const python::Interpreter interpreter = fake.interpreter();
  // In a thread of its own: it goes to the CPUs of those that it reads.
  std::thread([&] {
    Workers workers;
    ProcessSampler sampler(config, interpreter, fake.memory(), ring, workers);
    sampler.turn(clock_now(), workers.begin_turn());
    end = true;
    spinner.join();
    other.returns().calls("later");
    asleep.wakes();
    sampler.turn(clock_now(), workers.begin_turn());
    sampler.flush();
  }).join();

  profile::Profile seen;
  Identities identities(seen);
  Consumer consumer(layout, profile::ProcessId(1), seen, identities, [](profile::Thread&) {});
  consumer.drain(ring);
  identities.spans.flush();
  std::vector<std::string> leaves;
  for (const profile::Sample& sample : seen.samples()) {
    // On a busy machine it may have run for a while on its way into the second wait.
    if (sample.samples > 0 && seen.thread(sample.thread).tid == asleep.tid())
      leaves.push_back(seen.frame(seen.stack(sample.stack).frame).qualified_name);
  }
  EXPECT_EQ(leaves, (std::vector<std::string>{"earlier", "later"}));
}

// What the process's clock says in place of samples.
TEST(StoodStill, the_time_and_the_samples_are_each_threads_that_was_seen_blocked) {
  const python::Layout& layout = *python::find_layout(3, 12, {});
  test::FakeInterpreter fake(layout);
  fake.thread().calls("main").calls("waits");
  SleepingThread asleep;
  fake.set(fake.thread().state(), layout.thread.native_thread_id, static_cast<uint64_t>(asleep.tid()));
  Ring ring(1 << 20);
  ProcessSampler::Config config;
  config.pid = ::getpid();
  const python::Interpreter interpreter = fake.interpreter();
  Workers workers;
  ProcessSampler sampler(config, interpreter, fake.memory(), ring, workers);
  const Nanoseconds first = clock_now();
  EXPECT_FALSE(sampler.all_blocked_since(first));
  sampler.turn(first, workers.begin_turn());
  sampler.turn(first + kSecond, workers.begin_turn());
  EXPECT_TRUE(sampler.all_blocked_since(first + kSecond));
  // Seen blocked, but not since then.
  EXPECT_FALSE(sampler.all_blocked_since(first + kSecond + 1));
  sampler.stood_still(first + 3 * kSecond, workers.skip_rounds(20));
  EXPECT_EQ(sampler.counts().ticks, 22U);
  EXPECT_EQ(sampler.counts().samples, 22U);
  asleep.wakes();
  sampler.turn(first + 4 * kSecond, workers.begin_turn());
  EXPECT_EQ(sampler.counts().ticks, 23U);
  sampler.flush();

  profile::Profile seen;
  Identities identities(seen);
  Consumer consumer(layout, profile::ProcessId(1), seen, identities, [](profile::Thread&) {});
  consumer.drain(ring);
  identities.spans.flush();
  Nanoseconds wall = 0;
  uint64_t samples = 0;
  for (const profile::Sample& sample : seen.samples()) {
    wall += sample.wall;
    samples += sample.samples;
    // On a busy machine it still waits for a CPU after it was woken.
    if (sample.start + sample.wall <= first + 3 * kSecond) {
      EXPECT_EQ(sample.cpu_state, profile::CpuState::blocked);
    }
  }
  EXPECT_GE(wall, 4 * kSecond);
  EXPECT_LT(wall, 5 * kSecond);
  EXPECT_EQ(samples, 23U);
}

bool has_cframes(const python::Layout& row) {
  return row.traits.anchor == python::FrameAnchor::cframe && row.thread.native_thread_id.present();
}
INSTANTIATE_TEST_SUITE_P(ProcessSampler, CFrames, testing::ValuesIn(test::layout_rows(has_cframes)),
                         test::row_name);

}  // namespace
}  // namespace phlox::sampler
