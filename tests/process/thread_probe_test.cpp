#include "phlox/process/thread_probe.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <future>
#include <list>
#include <thread>

namespace phlox::process {
namespace {

TEST(Schedstat, three_numbers) {
  const auto s = parse_schedstat("550673253 6822719 38\n");
  ASSERT_TRUE(s);
  EXPECT_EQ(s->run_ns, 550673253U);
  EXPECT_EQ(s->wait_ns, 6822719U);
  EXPECT_EQ(s->count, 38U);
  EXPECT_FALSE(parse_schedstat("12 13"));
  EXPECT_FALSE(parse_schedstat(""));
}

TEST(Schedstat, a_changed_run_time_alone_means_it_moved) {
  EXPECT_TRUE(unmoved(SchedStat{10, 1, 3}, SchedStat{10, 9, 3}));
  EXPECT_FALSE(unmoved(SchedStat{10, 1, 3}, SchedStat{11, 1, 3}));
  EXPECT_FALSE(unmoved(SchedStat{10, 1, 3}, SchedStat{10, 1, 4}));
}

TEST(Schedstat, a_thread_that_lives_and_was_never_scheduled_in_is_not_counted_at_all) {
  EXPECT_TRUE(parse_schedstat("0 0 0\n")->off());
  EXPECT_TRUE((SchedStat{20'000'000, 0, 0}.off()));  // the run time of stat, where there is no schedstat
  EXPECT_FALSE((SchedStat{0, 5, 1}.off()));
}

TEST(Syscall, running_blocked_and_blocked_outside_a_call) {
  EXPECT_TRUE(parse_syscall("running\n")->running);
  const auto b = parse_syscall("202 0x7f01 0x189 0x0 0x0 0x0 0xffffffff 0x7ffd10 0x7f3b8b29e503\n");
  ASSERT_TRUE(b);
  EXPECT_FALSE(b->running);
  EXPECT_EQ(b->number, 202);
  EXPECT_EQ(b->arguments[0], 0x7f01U);
  EXPECT_EQ(b->stack_pointer, 0x7ffd10U);
  EXPECT_EQ(b->instruction_pointer, 0x7f3b8b29e503U);
  EXPECT_EQ(parse_syscall("-1 0x7ffd10 0x401000\n")->number, -1);
  EXPECT_FALSE(parse_syscall("202 0x7f01\n"));
}

TEST(KernelWorker, flags_distinguish_it_from_threads_of_the_program) {
  // As /proc/PID/task/TID/stat of Linux 6.18 has them: iou-sqp, iou-wrk, vhost, a thread of Python.
  constexpr uint64_t kSqp = 0x04004050, kWrk = 0x04004050, kVhost = 0x00004040, kPython = 0x00400040;
  EXPECT_TRUE(is_kernel_worker(kSqp, "6.18.2-amd64"));
  EXPECT_TRUE(is_kernel_worker(kWrk, "5.15.0"));
  EXPECT_TRUE(is_kernel_worker(kVhost, "6.4.0"));
  EXPECT_FALSE(is_kernel_worker(kPython, "6.18.2"));
}

TEST(KernelWorker, in_older_kernels_the_same_bits_are_other_things) {
  EXPECT_FALSE(is_kernel_worker(0x10, "5.11.22"));  // PF_VCPU
  EXPECT_FALSE(is_kernel_worker(0x4000, "6.3.1"));  // PF_USED_ASYNC
  EXPECT_TRUE(is_kernel_worker(0x10, "6.1.0-13-amd64"));
  EXPECT_TRUE(is_kernel_worker(0x4000, "10.0"));
  EXPECT_FALSE(is_kernel_worker(0x4010, "unknown"));
}

TEST(ThreadStatText, a_name_with_parentheses_and_blanks_does_not_shift_the_fields) {
  std::string text = "4711 (a) R 1 (b c) S";
  for (int field = 4; field < 39; ++field) text += " " + std::to_string(field);
  text += " 17 0 0\n";
  const auto s = parse_thread_stat(text);
  ASSERT_TRUE(s);
  EXPECT_EQ(s->state, 'S');
  EXPECT_EQ(s->ticks, 14U + 15U);
  EXPECT_EQ(s->flags, 9U);
  EXPECT_EQ(s->cpu, 17);
  EXPECT_FALSE(parse_thread_stat("4711 (python"));
}

TEST(Switches, both_kinds_add_up) {
  EXPECT_EQ(parse_switches("Name:\tx\nvoluntary_ctxt_switches:\t12\nnonvoluntary_ctxt_switches:\t30\n"), 42u);
  EXPECT_FALSE(parse_switches("Name:\tvoluntary_ctxt_switches:\t12\nnonvoluntary_ctxt_switches:\t30\n"));
  EXPECT_FALSE(parse_switches(""));
}

TEST(SwitchDrift, is_what_the_counts_of_a_sleeper_differ_by) {
  SwitchDrift drift;
  EXPECT_TRUE(drift.is_off_cpu(1000, 1000));
  EXPECT_FALSE(drift.is_off_cpu(1000, 1001));
  // Three times preempted on its way to sleep: off the CPU, and on it.
  EXPECT_FALSE(drift.is_off_cpu(1003, 1000));
  drift.was_asleep(1003, 1000);
  EXPECT_TRUE(drift.is_off_cpu(1103, 1100));
  EXPECT_FALSE(drift.is_off_cpu(1103, 1101));
  // Counts that are of two moments.
  drift.was_asleep(1200, 1201);
  EXPECT_TRUE(drift.is_off_cpu(1303, 1300));
}

TEST(ThreadProbe, a_sleeping_thread_is_off_the_cpu_and_one_that_runs_or_ran_is_not) {
  std::atomic<pid_t> tid{0};
  std::promise<void> go, end;
  std::thread sleeper([&] {
    tid = gettid();
    go.get_future().wait();
    tid = 0;
    end.get_future().wait();
  });
  while (tid == 0) std::this_thread::yield();
  ThreadProbe probe(getpid(), tid);
  const auto asleep = [&] {
    const auto in = probe.blocked_in();
    return in && !in->running;
  };
  while (!asleep()) std::this_thread::yield();
  const auto before = probe.schedstat();
  ASSERT_TRUE(before);
  EXPECT_EQ(probe.off_cpu_since(*before), true);
  go.set_value();
  while (tid != 0 || !asleep()) std::this_thread::yield();
  EXPECT_NE(probe.off_cpu_since(*before), true);
  end.set_value();
  sleeper.join();
  // It never slept, so its counts do not differ by what the kernel does not count.
  std::thread([] {
    ThreadProbe self(getpid(), gettid());
    // Unless it is pre-empted in between.
    std::optional<bool> off;
    for (int i = 0; i < 100 && !off; ++i) off = self.off_cpu_since(*self.schedstat());
    EXPECT_EQ(off, false);
  }).join();
}

TEST(ThreadProbe, the_time_at_which_a_thread_left_its_cpu_is_the_file_s_own) {
  EXPECT_EQ(parse_exec_start(
                "cat (8285, #threads: 1)\n-----\nse.exec_start         :      40917165.846563\nse.vruntime"),
            40917165846563);
  // A thread's name ends the first line: it may contain this key.
  EXPECT_EQ(parse_exec_start("a\nse.exec_start:1 (2, #threads: 1)\n--\nse.exec_start : 3.000004\nx"),
            3000004);
  for (const char* other :
       {"", "se.exec_start : 1.000000", "a\nse.exec_start", "a\nse.exec_start : ", "a\nse.exec_start : x",
        "a\nse.exec_start : 1", "a\nse.exec_start : 1.5\n", "a\nse.exec_start : -1.000000\n",
        "a\nse.exec_start : 99999999999999999999.000000\n",
        "a\nse.exec_start : 9223372036854775807.000000\n"})
    EXPECT_EQ(parse_exec_start(other), std::nullopt) << other;
}

TEST(ThreadProbe, a_thread_that_sleeps_on_left_its_cpu_once) {
  std::atomic<pid_t> tid{0};
  std::promise<void> end;
  std::thread sleeper([&] {
    tid = gettid();
    end.get_future().wait();
  });
  while (tid == 0) std::this_thread::yield();
  ThreadProbe probe(getpid(), tid);
  for (auto in = probe.blocked_in(); !in || in->running; in = probe.blocked_in()) std::this_thread::yield();
  const auto left = probe.left_cpu_at();
  // Not on a kernel without CONFIG_SCHED_DEBUG.
  if (left) {
    EXPECT_GT(*left, 0);
    std::this_thread::yield();
    EXPECT_EQ(probe.left_cpu_at(), left);
  }
  end.set_value();
  sleeper.join();
  EXPECT_EQ(probe.left_cpu_at(), std::nullopt);
}

TEST(ThreadProbe, many_of_them_leave_descriptors_for_others) {
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  rlimit few = before;
  few.rlim_cur = 64;
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
  std::list<ThreadProbe> probes;
  size_t answers = 0, open = 0;
  for (int i = 0; i < 100; ++i) {
    probes.emplace_back(getpid(), gettid());
    answers += probes.back().schedstat().has_value() && probes.back().blocked_in().has_value();
  }
  for (auto& probe : probes) answers += probe.schedstat().has_value();
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) ++open;
  ::setrlimit(RLIMIT_NOFILE, &before);
  EXPECT_EQ(answers, 200u);
  EXPECT_LE(open, 44u);
  EXPECT_GE(open, 30u);
}

TEST(ThreadProbe, reads_the_live_thread_and_nothing_of_a_gone_one) {
  ThreadProbe self(getpid(), gettid());
  const auto s = self.schedstat();
  ASSERT_TRUE(s);
  EXPECT_GT(s->count, 0U);
  ASSERT_TRUE(self.blocked_in());  // of ourselves some kernels say "running", some the read itself
  EXPECT_EQ(self.stat()->state, 'R');
  EXPECT_FALSE(self.kernel_name().empty());
  ThreadProbe gone(getpid(), 0x7ffffff0);
  EXPECT_FALSE(gone.schedstat());
}

}  // namespace
}  // namespace phlox::process
