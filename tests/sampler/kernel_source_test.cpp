#include "phlox/sampler/kernel/kernel_source.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "phlox/profile/profile.h"
#include "phlox/profile/wait_target.h"
#include "phlox/sampler/assemble/consumer.h"
#include "support/kernel_bytes.h"

namespace phlox::sampler {
namespace {

using profile::CpuState;
using profile::Quality;

constexpr uint64_t kMillisecond = 1'000'000;
constexpr uint32_t kThread = 77;

class KernelSourceTest : public testing::Test {
 protected:
  KernelSourceTest() { consumer_.with_wait_targets(files_); }

  uint32_t code(const std::string& name) {
    const auto bytes = test::kernel_code_bytes(fake_, fake_.code(name), ++serial_);
    source_.take(std::get<KernelCode>(parse_kernel_record(bytes)));
    return serial_;
  }
  // Its frames go out the first time.
  kernel_stack stack(std::vector<uint32_t> leaf_first) {
    kernel_stack stack{};
    stack.hash = 1;
    for (const uint32_t one : leaf_first) stack.hash = stack.hash * 31 + one;
    stack.state = fake_.thread().state().value;
    stack.interpreter = fake_.state().value;
    stack.python_id = fake_.thread().python_id();
    stack.count = static_cast<uint32_t>(leaf_first.size());
    stack.left_out = left_out_;
    std::vector<KernelFrame> frames;
    for (const uint32_t one : leaf_first) frames.push_back({one, 200});
    kernel_sample sample = test::kernel_sample_of(kThread, stack);
    sample.head.type = KERNEL_STACK;
    const auto bytes = test::kernel_bytes(sample, frames);
    source_.take(std::get<KernelSample>(parse_kernel_record(bytes)));
    return stack;
  }
  // At so many milliseconds; of these it ran, was blocked, and waited for a CPU. `off`: since when, if it
  // came back.
  void sample(double at, const kernel_stack& stack, double ran, double blocked, double queued,
              double off = 0) {
    KernelSample record;
    record.sample = test::kernel_sample_of(kThread, stack);
    const auto ms = [](double value) { return static_cast<uint64_t>(value * kMillisecond); };
    record.sample.time = start_ + ms(at);
    record.sample.ran = ms(ran);
    record.sample.blocked = ms(blocked);
    record.sample.queued = ms(queued);
    record.sample.off_since = off > 0 ? start_ + ms(off) : 0;
    if (off > 0) record.sample.system_call = call_;
    record.sample.waker = waker_;
    record.sample.native = off > 0 ? 0 : instruction_;
    source_.take(record);
  }
  static kernel_waker waker(uint32_t thread, uint32_t process, std::string_view name, uint64_t stack = 0) {
    kernel_waker waker{};
    waker.thread = thread;
    waker.process = process;
    waker.stack = stack;
    name.copy(waker.name, sizeof waker.name - 1);
    waker.ended = KERNEL_ENDED_BY_THREAD;
    return waker;
  }
  // Of the wait that began then.
  void wait_target(double off, kernel_wait_target of, std::string_view name) {
    of.thread = kThread;
    of.since = start_ + static_cast<uint64_t>(off * kMillisecond);
    const auto bytes = test::kernel_wait_target_bytes(of, name);
    source_.take(std::get<KernelWaitTarget>(parse_kernel_record(bytes)));
  }
  // What each wait was for, in order.
  std::vector<std::string> wait_target_words() {
    std::vector<std::string> words;
    for (const auto& sample : seen_.samples()) {
      if (sample.cpu_state != CpuState::blocked) {
        EXPECT_FALSE(sample.wait_target);
      } else {
        words.push_back(sample.wait_target
                            ? profile::wait_target_words(seen_.wait_targets()[sample.wait_target.value - 1])
                            : "?");
      }
    }
    return words;
  }
  // `known`: what the kernel has of the thread at the end.
  const profile::Profile& seen(double end = 100, const std::optional<kernel_thread>& known = {}) {
    source_.end_all(static_cast<Nanoseconds>(start_ + static_cast<uint64_t>(end * kMillisecond)),
                    [&](pid_t) { return known; });
    consumer_.drain(ring_);
    identities_.spans.flush();
    return seen_;
  }
  // Milliseconds of wall time with this leaf and state.
  double wall(const std::string& leaf, CpuState state) {
    Nanoseconds sum = 0;
    for (const auto& sample : seen_.samples()) {
      if (sample.cpu_state == state && sample.stack &&
          seen_.frame(seen_.stack(sample.stack).frame).function == leaf)
        sum += sample.wall;
    }
    return static_cast<double>(sum) / kMillisecond;
  }
  double cpu(const std::string& leaf) {
    Nanoseconds sum = 0;
    for (const auto& sample : seen_.samples()) {
      if (sample.stack && seen_.frame(seen_.stack(sample.stack).frame).function == leaf) sum += sample.cpu;
    }
    return static_cast<double>(sum) / kMillisecond;
  }

  test::FakeInterpreter fake_{*python::find_layout(3, 13, {})};
  python::Interpreter python_ = fake_.interpreter();
  Ring ring_{size_t{1} << 20};
  // Everything that is reported is over.
  uint64_t start_ = static_cast<uint64_t>(clock_now() - 10 * kSecond);
  KernelSource source_{python_, fake_.memory(), ring_, false, [] {}, static_cast<Nanoseconds>(start_)};
  profile::Profile seen_;
  Identities identities_{seen_};
  WaitTargetFiles::Host host_;
  // Descriptor 9 names a pipe.
  WaitTargetFiles files_{::getpid(), host_,
                         [](int descriptor) { return descriptor == 9 ? "/tmp/nine" : ""; }};
  Consumer consumer_{fake_.layout(), profile::ProcessId(1), seen_, identities_, [](profile::Thread&) {}};
  uint32_t serial_ = 0;
  uint32_t left_out_ = 0;     // of the next stacks
  kernel_waker waker_{};      // of the next looks
  uint64_t instruction_ = 0;  // at which the next are found by the clock
  int16_t call_ = 7;          // of the next ones that came back
};

TEST_F(KernelSourceTest, time_on_the_cpu_goes_to_what_the_clock_found) {
  const auto main = code("main"), a = code("a"), b = code("b");
  sample(1, stack({a, main}), 0, 0, 0);
  sample(2, stack({a, main}), 1, 0, 0);
  sample(3, stack({b, main}), 2, 0, 0);
  seen();
  EXPECT_NEAR(wall("a", CpuState::running), 1, 0.001);
  EXPECT_NEAR(wall("b", CpuState::running), 1, 0.001);
  EXPECT_NEAR(cpu("a"), 1, 0.001);
  EXPECT_NEAR(cpu("b"), 1, 0.001);
}

TEST_F(KernelSourceTest, a_wait_has_its_length_and_the_stack_that_it_began_with) {
  const auto main = code("main"), work = code("work"), wait = code("wait");
  sample(1, stack({work, main}), 0, 0, 0);
  // Ran until 4, slept until 24, got a CPU at 26.
  sample(26, stack({wait, main}), 3, 20, 2, 4);
  sample(27, stack({work, main}), 4, 20, 2);
  seen();
  EXPECT_NEAR(wall("wait", CpuState::blocked), 20, 0.001);
  EXPECT_NEAR(wall("wait", CpuState::runnable), 2, 0.001);
  EXPECT_NEAR(wall("work", CpuState::running), 4, 0.001);
  uint32_t samples = 0;
  for (const auto& sample : seen_.samples()) samples += sample.samples;
  EXPECT_EQ(samples, 3U) << "pieces of the time before a look are none";
  // Of the sample that the clock chose, not of the wait.
  EXPECT_NEAR(cpu("work"), 4, 0.001);
  EXPECT_NEAR(cpu("wait"), 0, 0.001);
}

TEST_F(KernelSourceTest, the_waker_is_in_the_last_piece_of_a_wait) {
  const auto main = code("main"), work = code("work"), wait = code("wait"), put = code("put");
  constexpr uint32_t kOther = 78;
  source_.of_process(70);
  sample(1, stack({work, main}), 0, 0, 0);
  KernelSample other;
  other.sample = test::kernel_sample_of(kOther, stack({put, main}));
  other.sample.time = start_ + 2 * kMillisecond;
  source_.take(other);
  waker_ = waker(kOther, 70, "python3", stack({put, main}).hash);
  sample(26, stack({wait, main}), 3, 20, 2, 4);
  waker_ = waker(99, 98, "nginx");
  sample(36, stack({wait, main}), 4, 29, 2, 27);
  waker_.process = 70;
  sample(41, stack({wait, main}), 4.5, 33, 2, 36.5);
  waker_.ended = KERNEL_ENDED_UNKNOWN;
  sample(46, stack({wait, main}), 5, 38, 2, 37);
  waker_ = {
      .thread = 0, .process = 0, .stack = 0, .name = {}, .ended = KERNEL_ENDED_BY_TIMEOUT, .reserved = 0};
  sample(56, stack({wait, main}), 6, 47, 2, 47);
  seen();
  std::vector<std::string> words;
  for (const auto& sample : seen_.samples()) {
    if (sample.cpu_state != CpuState::blocked) {
      EXPECT_FALSE(sample.waker);
      continue;
    }
    if (!sample.waker) {
      words.push_back("nobody");
      continue;
    }
    const profile::Waker& waker = seen_.wakers()[sample.waker.value - 1];
    words.push_back(waker.thread ? std::to_string(seen_.thread(waker.thread).tid) + " in " +
                                       seen_.frame(seen_.stack(waker.stack).frame).function
                                 : waker.other);
  }
  EXPECT_EQ(words, (std::vector<std::string>{"78 in put", "nginx (98)", "a thread that runs no Python",
                                             "nobody", "its timeout"}))
      << "what came after the last look is no part of a wait that is known to have ended";
}

TEST_F(KernelSourceTest, a_waker_that_ended_before_the_wait_is_reported_is_named) {
  const auto main = code("main"), work = code("work"), wait = code("wait"), put = code("put");
  constexpr uint32_t kOther = 78;
  sample(1, stack({work, main}), 0, 0, 0);
  KernelSample other;
  other.sample = test::kernel_sample_of(kOther, stack({put, main}));
  other.sample.time = start_ + 2 * kMillisecond;
  source_.take(other);
  kernel_exit gone{};
  gone.head.type = KERNEL_EXIT;
  gone.thread = kOther;
  gone.time = start_ + 10 * kMillisecond;
  source_.take(gone);
  waker_ = waker(kOther, 70, "python3");
  sample(26, stack({wait, main}), 3, 20, 2, 4);
  // It was over before this wait began: another thread has its number.
  sample(46, stack({wait, main}), 4, 38, 3, 28);
  seen();
  std::vector<std::string> words;
  for (const auto& sample : seen_.samples()) {
    if (!sample.waker) continue;
    const profile::Waker& waker = seen_.wakers()[sample.waker.value - 1];
    words.push_back(waker.thread ? std::to_string(seen_.thread(waker.thread).tid) : waker.other);
  }
  EXPECT_EQ(words, (std::vector<std::string>{"78", "python3 (70)"}));
}

TEST_F(KernelSourceTest, a_sample_of_the_clock_says_which_library_ran) {
  CodeFiles files(
      [] { return process::parse_maps("1000-2000 r-xp 00000000 08:01 5 /usr/lib/libblas.so.3\n"); },
      "/usr/bin/python3", RemoteAddress());
  source_.with_code_files(files);
  const auto main = code("main"), dot = code("dot");
  instruction_ = 0x1010;
  sample(1, stack({dot, main}), 0, 0, 0);
  sample(2, stack({dot, main}), 1, 0, 0);
  instruction_ = 0x9010;
  sample(3, stack({dot, main}), 2, 0, 0);
  instruction_ = 0x1010;
  sample(26, stack({main}), 3, 20, 2, 4);
  seen();
  uint32_t in_library = 0, elsewhere = 0;
  for (const auto& sample : seen_.samples()) {
    if (sample.cpu_state != CpuState::running) {
      EXPECT_FALSE(sample.code_file);
      continue;
    }
    (sample.code_file ? in_library : elsewhere) += sample.samples;
    if (sample.code_file) {
      EXPECT_EQ(seen_.modules()[sample.code_file.value - 1].path, "/usr/lib/libblas.so.3");
    }
  }
  EXPECT_EQ(in_library, 2U);
  EXPECT_EQ(elsewhere, 1U);
}

TEST_F(KernelSourceTest, short_waits_that_belong_to_a_run_are_in_no_library) {
  CodeFiles files(
      [] { return process::parse_maps("1000-2000 r-xp 00000000 08:01 5 /usr/lib/libblas.so.3\n"); },
      "/usr/bin/python3", RemoteAddress());
  source_.with_code_files(files);
  const auto main = code("main"), dot = code("dot");
  instruction_ = 0x1010;
  sample(1, stack({dot, main}), 0, 0, 0);
  sample(5, stack({main}), 2, 2, 0, 4.5);
  sample(9, stack({dot, main}), 4, 4, 0);
  sample(250, stack({main}), 60, 185, 0, 248);
  seen(250);
  EXPECT_GT(wall("dot", CpuState::blocked), 100);
  bool in_library = false;
  for (const auto& sample : seen_.samples()) {
    in_library = in_library || sample.code_file;
    EXPECT_TRUE(!sample.code_file || sample.cpu_state == CpuState::running)
        << static_cast<int>(sample.cpu_state);
  }
  EXPECT_TRUE(in_library);
}

// Of ten short ones, each of which also waited for a CPU a little.
TEST_F(KernelSourceTest, short_waits_together_have_the_stack_that_represents_them) {
  const auto main = code("main"), nap = code("nap"), lock = code("lock");
  sample(1, stack({main}), 0, 0, 0);
  kernel_stack first = stack({nap, main}), second = stack({lock, main});
  first.flags = second.flags = KERNEL_TOGETHER;
  sample(3, first, 0.5, 1, 0.5, 2.9);
  sample(5, second, 1, 2, 1, 4.9);
  sample(7, second, 1.5, 3, 1.5, 6.9);
  seen(7);
  EXPECT_NEAR(wall("nap", CpuState::blocked), 1, 0.001);
  EXPECT_NEAR(wall("lock", CpuState::blocked), 2, 0.001);
  EXPECT_NEAR(wall("nap", CpuState::runnable) + wall("lock", CpuState::runnable), 1.5, 0.001);
}

// Short waits whose stack is another's: who ended the last of them ended none of those.
TEST_F(KernelSourceTest, a_stack_that_represents_others_has_no_waker) {
  const auto main = code("main"), nap = code("nap");
  sample(1, stack({main}), 0, 0, 0);
  waker_ = waker(99, 98, "nginx");
  kernel_stack standing = stack({nap, main});
  standing.flags = KERNEL_STANDS_IN;
  sample(10, standing, 1, 8, 0, 9.5);
  sample(20, stack({nap, main}), 2, 17, 0, 11);
  seen();
  EXPECT_NEAR(wall("nap", CpuState::blocked), 17, 0.001);
  std::vector<bool> woken;
  for (const auto& sample : seen_.samples())
    if (sample.cpu_state == CpuState::blocked) woken.push_back(bool(sample.waker));
  EXPECT_EQ(woken, (std::vector<bool>{false, true}));
  // What it ran since the clock found it last is no wait's.
  EXPECT_NEAR(cpu("nap"), 0, 0.001);
  EXPECT_NEAR(cpu("(ran between two samples)"), 2, 0.001);
}

TEST_F(KernelSourceTest, a_wait_target_is_reported_before_its_wait) {
  using namespace std::string_view_literals;
  const auto main = code("main"), work = code("work"), wait = code("wait");
  sample(1, stack({work, main}), 0, 0, 0);
  kernel_wait_target file{};
  file.mode = S_IFREG;
  wait_target(4, file, "app.log\0log\0"sv);
  sample(26, stack({wait, main}), 3, 20, 2, 4);
  sample(36, stack({wait, main}), 4, 29, 2, 27);
  file.others = 2;
  wait_target(37, file, "app.log\0log\0"sv);
  sample(46, stack({wait, main}), 5, 38, 2, 37);
  file.flags = KERNEL_WAIT_TARGET_NONE;
  wait_target(47, file, "[eventpoll]\0"sv);
  sample(56, stack({wait, main}), 6, 47, 2, 47);
  seen();
  EXPECT_EQ(wait_target_words(),
            (std::vector<std::string>{"/log/app.log", "?", "/log/app.log and 2 more", "a timeout"}));
}

TEST_F(KernelSourceTest, a_wait_for_a_child_was_for_the_one_that_ended_it) {
  const auto main = code("main"), work = code("work"), wait = code("wait");
  sample(1, stack({work, main}), 0, 0, 0);
  waker_ = waker(4711, 4711, "sleep");
  call_ = 61;
  sample(26, stack({wait, main}), 3, 20, 2, 4);
  call_ = 7;
  waker_ = {};
  sample(36, stack({wait, main}), 4, 29, 2, 27);
  seen();
  EXPECT_EQ(wait_target_words(), (std::vector<std::string>{"sleep (4711)", "?"}));
}

TEST_F(KernelSourceTest, of_a_wait_that_goes_on_the_descriptor_is_asked_for) {
  const auto main = code("main"), work = code("work"), wait = code("wait");
  sample(1, stack({work, main}), 0, 0, 0);
  kernel_thread known{};
  known.since = known.off.since = start_ + 4 * kMillisecond;
  known.state = KERNEL_BLOCKED;
  known.off.system_call = 0;
  known.off.stack = stack({wait, main});
  known.off.walked = 1;
  known.sums.ran = 3 * kMillisecond;
  known.off.waits_for = 9;
  known.off.waits_for_what = KERNEL_WAITS_FOR_FILE;
  for (const Nanoseconds later : {Nanoseconds{0}, kSecond}) {
    const Nanoseconds now = clock_now() + later;
    source_.ask_after_silent(now, now, [&](pid_t) { return std::optional(known); });
    consumer_.drain(ring_);
  }
  seen(12'000, known);
  // It may have been over when the descriptor was first read, but not when the wait was reported again.
  EXPECT_EQ(wait_target_words(), (std::vector<std::string>{"?", "/tmp/nine", "/tmp/nine"}));
}

// A wait with its own record has its length, whatever ran before it.
TEST_F(KernelSourceTest, what_ran_a_moment_before_a_wait_is_no_part_of_it) {
  const auto main = code("main"), work = code("work"), wait = code("wait");
  sample(1, stack({work, main}), 0, 0, 0);
  sample(4.15, stack({wait, main}), 0.15, 3, 0, 1.15);
  sample(7.3, stack({wait, main}), 0.3, 6, 0, 4.3);
  seen();
  for (const auto& sample : seen_.samples()) {
    if (sample.cpu_state == CpuState::blocked) {
      EXPECT_NEAR(static_cast<double>(sample.wall), 3e6, 20'000);
    }
  }
  EXPECT_NEAR(wall("wait", CpuState::blocked), 6, 0.02);
}

// As a spinning lock yields where others want the CPU, too.
TEST_F(KernelSourceTest, a_thread_with_little_cpu_that_waits_for_nothing_is_not_blocked) {
  const auto main = code("main"), work = code("work");
  sample(1, stack({work, main}), 0, 0, 0);
  call_ = -1;
  sample(5.005, stack({work, main}), 0.005, 0, 4, 1.005);
  sample(9.010, stack({work, main}), 0.010, 0, 8, 5.010);
  sample(13.015, stack({work, main}), 0.015, 0, 12, 9.015);
  seen(13.015);
  EXPECT_EQ(wall("work", CpuState::blocked), 0);
  EXPECT_NEAR(wall("work", CpuState::runnable), 12, 0.02);
}

// No clock sample saw it between these two, but it had waited for it.
TEST_F(KernelSourceTest, a_thread_that_returns_from_waiting_for_the_gil_holds_it) {
  const auto main = code("main"), work = code("work");
  kernel_stack waits = stack({work, main});
  waits.flags = KERNEL_WAITS_GIL;
  sample(1, stack({work, main}), 0, 0, 0);
  waker_.thread = 1;
  sample(6, waits, 0.5, 4.5, 0, 1.5);
  sample(12, waits, 1.5, 9.5, 0, 7);
  // Woke by itself after 5 ms, ran to ask for the GIL, and waits on.
  waker_.thread = 0;
  sample(18, waits, 2, 15, 0, 12.5);
  sample(24, waits, 2.5, 20.5, 0, 18.5);
  // Got it from whomever, or it could not have gone to sleep elsewhere.
  sample(30, stack({work, main}), 3, 26, 0, 24.5);
  seen();
  const auto held = [&](profile::GilState state) {
    Nanoseconds sum = 0;
    for (const auto& sample : seen_.samples()) {
      if (sample.cpu_state == CpuState::running && sample.gil_state == state) sum += sample.wall;
    }
    return static_cast<double>(sum) / kMillisecond;
  };
  EXPECT_NEAR(held(profile::GilState::holds), 1 + 0.5 + 0.5, 0.01);
  EXPECT_NEAR(held(profile::GilState::waits), 0, 0.001);
}

// A run is not full of moments of a sleep that is long over.
TEST_F(KernelSourceTest, short_waits_go_to_the_last_wait_unless_it_is_long_over_and_the_thread_ran_since) {
  const auto main = code("main"), work = code("work"), wait = code("wait");
  sample(1, stack({work, main}), 0, 0, 0);
  sample(5, stack({wait, main}), 2, 2, 0, 4.5);
  sample(9, stack({work, main}), 4, 4, 0);
  sample(213, stack({work, main}), 106, 106, 0);
  // Pre-empted, it comes back, and has not slept.
  sample(214, stack({work, main}), 106, 106, 1, 213);
  sample(218, stack({work, main}), 108, 108, 1);
  seen(218);
  EXPECT_NEAR(wall("wait", CpuState::blocked), 4, 0.001);
  EXPECT_NEAR(wall("work", CpuState::blocked), 104, 0.001);
  for (const auto& sample : seen_.samples()) {
    const bool late = sample.start > static_cast<Nanoseconds>(start_ + 9 * kMillisecond);
    if (sample.cpu_state == CpuState::blocked && late) {
      EXPECT_EQ(sample.system_call, profile::kCallNotRecorded);
    }
  }
  EXPECT_NEAR(wall("work", CpuState::running) + wall("wait", CpuState::running), 108, 0.5);
  EXPECT_NEAR(cpu("work"), 108, 0.001);
}

// Its first wait was not walked, so it was not known to run Python.
TEST_F(KernelSourceTest, waits_of_a_thread_before_it_is_met_are_no_run_and_in_no_function) {
  const auto main = code("main"), work = code("work");
  sample(52, stack({work, main}), 1, 51, 0);
  seen(53);
  EXPECT_NEAR(wall("(a wait whose stack was not read)", CpuState::blocked), 51, 0.001);
  EXPECT_NEAR(wall("work", CpuState::running), 1, 0.001);
  EXPECT_NEAR(wall("work", CpuState::blocked), 0, 0.001);
}

TEST_F(KernelSourceTest, a_thread_that_is_met_in_a_wait_had_its_waits_before_elsewhere) {
  const auto main = code("main"), nap = code("nap");
  sample(60, stack({nap, main}), 1, 59, 0, 50);
  seen(60);
  EXPECT_NEAR(wall("nap", CpuState::blocked), 10, 0.001);
  EXPECT_NEAR(wall("(a wait whose stack was not read)", CpuState::blocked), 49, 0.001);
}

// What was looked for in the last wait, no record says of those that came after it.
TEST_F(KernelSourceTest, unreported_short_waits_have_no_target) {
  using namespace std::string_view_literals;
  const auto main = code("main"), work = code("work"), read = code("read");
  sample(1, stack({work, main}), 0, 0, 0);
  kernel_wait_target of{};
  of.head.type = KERNEL_WAIT_TARGET;
  of.flags = KERNEL_WAIT_TARGET_NONE;
  wait_target(1.5, of, ""sv);
  sample(10, stack({read, main}), 1, 8, 0, 1.5);
  sample(15, stack({work, main}), 3, 11, 0);
  sample(20, stack({work, main}), 5, 14, 0);
  seen(20);
  const auto words = wait_target_words();
  ASSERT_EQ(words.size(), 3U);
  EXPECT_NE(words[0], "?");
  EXPECT_EQ(words[1], "?");
  EXPECT_EQ(words[2], "?");
}

TEST_F(KernelSourceTest, a_thread_blocked_before_is_where_it_was) {
  ParkedThreads parked;
  parked.codes.push_back(std::make_unique<python::CodeCapture>());
  ASSERT_TRUE(python::capture_code(fake_.layout(), fake_.memory(), fake_.code("sleeper"), *parked.codes[0]));
  parked.threads.push_back({.tid = static_cast<pid_t>(kThread), .python_id = 5, .frames = {{0, 200}}});
  source_.begin(parked, static_cast<Nanoseconds>(start_));
  source_.ask_after_silent(static_cast<Nanoseconds>(start_ + 500 * kMillisecond),
                           static_cast<Nanoseconds>(start_ + 499 * kMillisecond),
                           [](pid_t) { return std::optional<kernel_thread>(); });
  consumer_.drain(ring_);
  identities_.spans.flush();
  EXPECT_NEAR(wall("sleeper", CpuState::blocked), 500, 0.001);
}

TEST_F(KernelSourceTest, a_wait_is_reported_as_it_grows) {
  const auto main = code("main"), wait = code("wait");
  const kernel_stack waiting = stack({wait, main});
  sample(1, waiting, 0, 0, 0);
  kernel_thread known{};
  known.since = known.off.since = start_ + 2 * kMillisecond;
  known.sums.ran = kMillisecond;
  known.state = KERNEL_BLOCKED;
  known.off.stack = waiting;
  known.off.walked = 1;
  source_.ask_after_silent(static_cast<Nanoseconds>(start_ + 302 * kMillisecond),
                           static_cast<Nanoseconds>(start_ + 301 * kMillisecond),
                           [&](pid_t) { return std::optional(known); });
  // And not again when it is over.
  sample(402, waiting, 1, 400, 0, 2);
  seen(402);
  EXPECT_NEAR(wall("wait", CpuState::blocked), 400, 0.3);
}

TEST_F(KernelSourceTest, a_long_wait_that_the_kernel_did_not_read_is_read_from_outside) {
  const auto main = code("main"), run = code("run");
  sample(1, stack({run, main}), 1, 0, 0);
  ParkedThreads outside;
  kernel_thread known{};
  known.since = known.off.since = start_ + 2 * kMillisecond;
  known.sums.ran = 2 * kMillisecond;
  known.state = KERNEL_BLOCKED;
  known.off.system_call = 202;
  int reads = 0;
  const auto read = [&](std::span<const pid_t> threads) {
    ++reads;
    EXPECT_EQ(std::vector<pid_t>(threads.begin(), threads.end()), (std::vector<pid_t>{kThread}));
    ParkedThreads found;
    found.codes.push_back(std::make_unique<python::CodeCapture>());
    EXPECT_TRUE(python::capture_code(fake_.layout(), fake_.memory(), fake_.code("sleeper"), *found.codes[0]));
    found.threads.push_back({.tid = static_cast<pid_t>(kThread), .python_id = 5, .frames = {{0, 200}}});
    return found;
  };
  for (const uint64_t later : {12, 32, 302, 402}) {
    const auto now = static_cast<Nanoseconds>(start_ + later * kMillisecond);
    const auto ask = [&](pid_t) { return std::optional(known); };
    source_.read_long_waits(now, ask, read);
    source_.ask_after_silent(now, now - kSecond / 1000, ask);
    EXPECT_EQ(reads, later < 20 ? 0 : 1);
  }
  EXPECT_EQ(reads, 1);
  kernel_stack unread{};
  unread.flags = KERNEL_NOT_WALKED;
  sample(502, unread, 2, 500, 0, 2);
  // The next wait is another one.
  sample(513, unread, 3, 510, 0, 503);
  seen(513);
  EXPECT_NEAR(wall("sleeper", CpuState::blocked), 500, 0.5);
  EXPECT_NEAR(wall("(a wait whose stack was not read)", CpuState::blocked), 10, 0.5);
}

TEST_F(KernelSourceTest, a_wait_that_moved_while_it_was_read_is_not_known) {
  const auto main = code("main"), run = code("run");
  sample(1, stack({run, main}), 1, 0, 0);
  kernel_thread known{};
  known.since = known.off.since = start_ + 2 * kMillisecond;
  known.sums.ran = 2 * kMillisecond;
  known.state = KERNEL_BLOCKED;
  const auto now = static_cast<Nanoseconds>(start_ + 302 * kMillisecond);
  source_.read_long_waits(
      now, [&](pid_t) { return std::optional(known); },
      [&](std::span<const pid_t>) {
        ParkedThreads found;
        found.codes.push_back(std::make_unique<python::CodeCapture>());
        EXPECT_TRUE(
            python::capture_code(fake_.layout(), fake_.memory(), fake_.code("sleeper"), *found.codes[0]));
        found.threads.push_back({.tid = static_cast<pid_t>(kThread), .python_id = 5, .frames = {{0, 200}}});
        known.off.since += kMillisecond;
        return found;
      });
  seen(402, known);
  EXPECT_EQ(wall("sleeper", CpuState::blocked), 0);
}

TEST_F(KernelSourceTest, a_wait_that_is_open_at_the_end_is_reported_up_to_there) {
  const auto main = code("main"), wait = code("wait");
  const kernel_stack waiting = stack({wait, main});
  sample(1, waiting, 0, 0, 0);
  kernel_thread known{};
  known.since = known.off.since = start_ + 2 * kMillisecond;
  known.sums.ran = kMillisecond;
  known.state = KERNEL_BLOCKED;
  known.off.stack = waiting;
  known.off.walked = 1;
  seen(80, known);
  EXPECT_NEAR(wall("wait", CpuState::blocked), 78, 0.001);
  EXPECT_NEAR(wall("wait", CpuState::running), 1, 0.001);
}

TEST_F(KernelSourceTest, an_unreported_run_and_short_waits_are_reported_at_the_end) {
  const auto main = code("main"), work = code("work"), wait = code("wait");
  sample(1, stack({work, main}), 0, 0, 0);
  sample(26, stack({wait, main}), 5, 20, 0, 6);
  sample(27, stack({work, main}), 6, 20, 0);
  kernel_thread known{};
  known.since = start_ + 30 * kMillisecond;
  known.sums.ran = 8 * kMillisecond;
  known.sums.blocked = 20 * kMillisecond + kMillisecond / 2;
  known.sums.queued = kMillisecond / 2;
  known.state = KERNEL_RUNNING;
  seen(40, known);
  EXPECT_NEAR(wall("wait", CpuState::blocked), 20.5, 0.001);
  EXPECT_NEAR(wall("work", CpuState::running), 18, 0.001);
  EXPECT_NEAR(wall("work", CpuState::runnable), 0.5, 0.001);
  EXPECT_NEAR(cpu("work"), 18, 0.001);
}

TEST_F(KernelSourceTest, what_a_thread_ran_that_was_only_seen_waiting_is_no_function_s) {
  const auto main = code("main"), wait = code("wait");
  sample(1, stack({wait, main}), 0, 0, 0, 0.5);
  sample(20, stack({wait, main}), 1, 18, 0, 2);
  kernel_thread known{};
  known.since = start_ + 30 * kMillisecond;
  known.sums.ran = 2 * kMillisecond;
  known.sums.blocked = 18 * kMillisecond;
  known.state = KERNEL_RUNNING;
  seen(33, known);
  EXPECT_NEAR(cpu("wait"), 0, 0.001);
  EXPECT_NEAR(cpu("(ran between two samples)"), 5, 0.001);
}

TEST_F(KernelSourceTest, memory_that_was_not_there_is_a_sample_that_says_so) {
  const auto main = code("main");
  sample(1, stack({main}), 0, 0, 0);
  kernel_stack failed = stack({main});
  failed.end = KERNEL_END_UNREADABLE;
  failed.count = 0;
  sample(2, failed, 1, 0, 0);
  const auto& samples = seen().samples();
  ASSERT_FALSE(samples.empty());
  EXPECT_EQ(samples.back().quality, Quality::rejected);
}

TEST_F(KernelSourceTest, a_page_that_was_not_there_is_brought_in_but_not_without_end) {
  kernel_stack failed = stack({code("main")});
  failed.end = KERNEL_END_UNREADABLE;
  failed.count = 0;
  failed.hash = fake_.code("main").value;
  const size_t before = fake_.memory().calls();
  sample(1, failed, 0, 0, 0);
  const size_t once = fake_.memory().calls() - before;
  EXPECT_GT(once, 0U);
  for (int i = 0; i < 10'000; ++i) sample(1 + i * 0.001, failed, 0, 0, 0);
  EXPECT_LT(fake_.memory().calls() - before, 1'000 * once);
}

TEST_F(KernelSourceTest, a_thread_without_python_is_none_of_ours) {
  kernel_stack none{};
  none.end = KERNEL_END_NO_STATE;
  sample(1, none, 0, 0, 0);
  EXPECT_TRUE(seen().samples().empty());
}

// Found by the fuzz target.
TEST_F(KernelSourceTest, no_thread_begins_before_its_first_sample) {
  KernelSample record;
  record.sample = test::kernel_sample_of(kThread, stack({code("main")}));
  record.sample.time = 5;
  source_.take(record);
  seen();
  ASSERT_FALSE(seen_.threads().empty());
  EXPECT_EQ(seen_.threads().back().start, source_.began());
  for (const auto& sample : seen_.samples()) EXPECT_GE(sample.wall, 0);
}

TEST_F(KernelSourceTest, a_wait_that_was_only_counted_says_so) {
  const auto main = code("main");
  sample(1, stack({main}), 0, 0, 0);
  kernel_stack counted = stack({main});
  counted.count = 0;
  counted.flags = KERNEL_NOT_WALKED;
  sample(11, counted, 1, 9, 0, 2);
  seen();
  EXPECT_NEAR(wall("(a wait whose stack was not read)", CpuState::blocked), 9, 0.001);
}

// Who waits for the GIL asks for it with a timeout again and again, which is no end of that wait.
TEST_F(KernelSourceTest, a_wait_without_its_stack_may_have_been_for_the_gil) {
  const auto main = code("main");
  sample(1, stack({main}), 0, 0, 0);
  kernel_stack counted = stack({main});
  counted.count = 0;
  counted.flags = KERNEL_NOT_WALKED;
  waker_.ended = KERNEL_ENDED_BY_TIMEOUT;
  call_ = 202;
  double waits_so_far = 0;
  for (const unsigned flags : {unsigned{KERNEL_GIL_UNKNOWN}, unsigned{KERNEL_WAITS_GIL}, 0u}) {
    counted.flags = static_cast<uint16_t>(KERNEL_NOT_WALKED | flags);
    ++waits_so_far;
    sample(10 * waits_so_far + 1, counted, waits_so_far, 9 * waits_so_far, 0, 10 * waits_so_far - 8);
  }
  seen();
  std::vector<std::pair<profile::GilState, bool>> waits;
  for (const auto& sample : seen_.samples()) {
    if (sample.cpu_state == CpuState::blocked && sample.wall > 5'000'000)
      waits.emplace_back(sample.gil_state, bool(sample.waker));
  }
  using profile::GilState;
  EXPECT_EQ(waits, (std::vector<std::pair<GilState, bool>>{
                       {GilState::unknown, false}, {GilState::waits, false}, {GilState::none, true}}));
}

TEST_F(KernelSourceTest, what_a_thread_did_before_it_ended_is_reported) {
  const auto main = code("main"), work = code("work");
  sample(1, stack({work, main}), 0, 0, 0);
  kernel_exit exit{};
  exit.head = {KERNEL_EXIT, 1};
  exit.thread = kThread;
  exit.first = 1;
  exit.time = start_ + 6 * kMillisecond;
  exit.ran = 3 * kMillisecond;
  exit.queued = 2 * kMillisecond;
  source_.take(exit);
  seen();
  EXPECT_NEAR(wall("work", CpuState::running), 3, 0.001);
  EXPECT_NEAR(wall("work", CpuState::runnable), 2, 0.001);
  EXPECT_NEAR(cpu("work"), 3, 0.001);
  ASSERT_TRUE(source_.end());
  EXPECT_EQ(source_.end()->time, static_cast<Nanoseconds>(exit.time));
  EXPECT_EQ(source_.end()->used, static_cast<Nanoseconds>(exit.ran));
}

TEST_F(KernelSourceTest, earlier_sums_of_the_kernel_are_reported_at_the_beginning_without_a_sample) {
  kernel_thread known{};
  known.sums.ran = 40 * kMillisecond;
  known.sums.blocked = 900 * kMillisecond;
  known.sums.queued = 2 * kMillisecond;
  source_.go_on_from(static_cast<pid_t>(kThread), 5 * kMillisecond, {{static_cast<pid_t>(kThread), known}});
  consumer_.with_end(static_cast<pid_t>(kThread), [] { return std::nullopt; });
  consumer_.with_start(static_cast<Nanoseconds>(start_ - 942 * kMillisecond));
  const auto main = code("main");
  sample(1, stack({main}), 41, 900, 2);
  sample(2, stack({main}), 42, 900, 2);
  seen();
  EXPECT_NEAR(cpu("(before its Python was up)"), 35, 0.001);
  EXPECT_NEAR(cpu("main"), 2, 0.001);
  EXPECT_NEAR(wall("main", CpuState::blocked) + wall("main", CpuState::runnable), 0, 0.001);
}

TEST_F(KernelSourceTest, a_deep_stack_says_in_its_middle_how_much_is_left_out) {
  const auto main = code("main"), again = code("again"), leaf = code("leaf");
  std::vector<uint32_t> leaf_first(KERNEL_MAX_FRAMES, again);
  leaf_first.front() = leaf;
  leaf_first.back() = main;
  left_out_ = 700;
  sample(1, stack(leaf_first), 0, 0, 0);
  const auto& samples = seen().samples();
  ASSERT_EQ(samples.size(), 1U);
  EXPECT_EQ(samples[0].quality, Quality::cut);
  std::vector<std::string> names;
  for (auto at = samples[0].stack; at; at = seen_.stack(at).parent)
    names.push_back(seen_.frame(seen_.stack(at).frame).function);
  ASSERT_EQ(names.size(), size_t{KERNEL_MAX_FRAMES} + 1);
  EXPECT_EQ(names.front(), "leaf");
  EXPECT_EQ(names[KERNEL_MAX_FRAMES / 2], "(700 frames left out)");
  EXPECT_EQ(names.back(), "main");
}

TEST_F(KernelSourceTest, a_stack_whose_frames_were_lost_says_so) {
  const auto main = code("main");
  kernel_stack unknown = stack({main});
  unknown.hash ^= 1;
  sample(1, unknown, 0, 0, 0);
  sample(2, unknown, 1, 0, 0);
  seen();
  EXPECT_NEAR(wall("(a function not read: too many new ones at once)", CpuState::running), 1, 0.001);
}

}  // namespace
}  // namespace phlox::sampler
