// The kernel's facts about one thread of a target, cheap and often: descriptors of its /proc files stay open
// as long as the limit on them leaves room for others. Costs measured on Linux 6.18: schedstat 0.8 us,
// syscall 1.0 us (running) or 1.7 us (blocked), stat 2.8 us; opened again, 4 us more. Reads only; decides
// nothing.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "phlox/base/clock.h"
#include "phlox/base/descriptor.h"

namespace phlox::process {

// /proc/PID/task/TID/schedstat (Documentation/scheduler/sched-stats.rst): time on a CPU, time waiting for
// one, times scheduled in. A running thread's run_ns moves only with the scheduler's tick; once it is off the
// CPU it is exact.
struct SchedStat {
  uint64_t run_ns = 0;
  uint64_t wait_ns = 0;
  uint64_t count = 0;
  // Never scheduled in although the thread lives: the kernel does not count (or the thread has never run
  // yet).
  bool off() const { return count == 0; }
  // The difference since `before`; nothing if a count fell: a thread that executes another program gets its
  // process's number (execve(2)), with lower counts than the thread had.
  friend SchedStat operator-(const SchedStat& now, const SchedStat& before) {
    const auto more = [](uint64_t a, uint64_t b) { return a > b ? a - b : 0; };
    return {more(now.run_ns, before.run_ns), more(now.wait_ns, before.wait_ns),
            more(now.count, before.count)};
  }
  // Whether a thread that was off the CPU when `a` was read did not run until `b` was read.
  friend bool unmoved(const SchedStat& a, const SchedStat& b) {
    return a.run_ns == b.run_ns && a.count == b.count;
  }
};
std::optional<SchedStat> parse_schedstat(std::string_view text);

// /proc/PID/task/TID/syscall (fs/proc/base.c: proc_pid_syscall): "running" for a thread that runs or is
// runnable; otherwise the number (-1: blocked outside a system call, a page fault), six arguments, stack
// pointer and instruction pointer.
struct BlockedIn {
  bool running = true;
  int64_t number = -1;
  uint64_t arguments[6] = {};
  uint64_t stack_pointer = 0;
  uint64_t instruction_pointer = 0;
};
std::optional<BlockedIn> parse_syscall(std::string_view text);

// Fields 3 (state), 9 (flags), 14 and 15 (time used, in clock ticks) and 39 (CPU last executed on) of
// /proc/PID/task/TID/stat; the name before them may hold anything.
struct ThreadStat {
  char state = '?';
  uint64_t flags = 0;  // PF_* of include/linux/sched.h
  uint64_t ticks = 0;  // in user and in kernel mode
  int cpu = -1;
  // The first thread of a process stays listed after its end while others run on.
  bool has_ended() const { return state == 'Z' || state == 'X'; }
};
std::optional<ThreadStat> parse_thread_stat(std::string_view text);

// Whether these are the flags of a thread that the kernel runs inside a process for itself: io_uring's
// iou-sqp-* and iou-wrk-*, vhost's. It has no user stack, is never walked and never stopped: a stop wakes it
// up. `release`: uname's; in older kernels the same bits have another meaning.
bool is_kernel_worker(uint64_t flags, std::string_view release);
// The same for this kernel.
bool is_kernel_worker(uint64_t flags);
// How many of the process's threads are such threads; with thousands of threads, none is checked.
size_t count_kernel_workers(pid_t pid);

// se.exec_start in /proc/PID/task/TID/sched, in ns of the run queue's clock: when the kernel last added to
// the thread's run time. For a thread that is off its CPU, this is when it left; for one that has just come
// to its CPU, when it came (Linux 6.18: update_curr and set_next_entity in kernel/sched/fair.c,
// set_next_task_rt in kernel/sched/rt.c). Both are equal for a thread and the next one on its CPU, since
// __schedule updates the clock once for the two.
std::optional<Nanoseconds> parse_exec_start(std::string_view text);

// Times scheduled out: the two counts of switches in /proc/PID/task/TID/status, added up.
std::optional<uint64_t> parse_switches(std::string_view text);

// The difference of a thread's two counts while it is off the CPU. Each switch out belongs to a switch in,
// except for a thread that is preempted on its way to sleep: __schedule (kernel/sched/core.c) counts that
// switch, and sched_info_arrive (kernel/sched/stats.h, Linux 6.18) not the way back, because
// sched_info_depart queues only threads that are TASK_RUNNING. On a busy machine that is one switch of some
// thousands.
class SwitchDrift {
 public:
  // Both counts of one moment at which it was asleep, and whether it is off the CPU now.
  void was_asleep(uint64_t out, uint64_t in) {
    if (out >= in) drift_ = out - in;
  }
  bool is_off_cpu(uint64_t out, uint64_t in) const { return out == in + drift_; }
  bool is_on_cpu(uint64_t out, uint64_t in) const { return out + 1 == in + drift_; }

 private:
  uint64_t drift_ = 0;
};

class ThreadProbe {
 public:
  ThreadProbe(pid_t pid, pid_t tid);

  pid_t tid() const { return tid_; }
  // Each returns nothing if the thread is gone (ESRCH) or the file may not be read. If the kernel does not
  // count (no such file, or zeros: fs/proc/base.c, CONFIG_SCHED_INFO and proc_pid_schedstat): off(), with the
  // run time of stat, which moves in clock ticks.
  std::optional<SchedStat> schedstat();
  std::optional<BlockedIn> blocked_in();
  std::optional<ThreadStat> stat();
  int cpu();                  // the CPU that it runs on, or ran on last; -1: gone
  std::string kernel_name();  // comm, opened again at each call
  // True: it was off every CPU when `since` was read, and has been since: scheduled out as often as in.
  // False: it was on a CPU then, and has not left it: scheduled in once more than out. Nothing: neither is
  // certain, or the kernel does not count. Opens one more file (20 us), and again when a sample next finds it
  // blocked.
  std::optional<bool> off_cpu_since(const SchedStat& since);
  // When a thread that is off its CPU left it, by that run queue's clock (parse_exec_start). Takes 7 us.
  // Nothing: the thread is gone, or the kernel has no such file (before Linux 6.15: CONFIG_SCHED_DEBUG).
  std::optional<Nanoseconds> left_cpu_at();
  // Whether /proc/.../syscall may be read at all: the kernel requires the right to attach.
  bool syscall_readable() const { return syscall_readable_; }

 private:
  std::optional<std::string_view> read(Descriptor& descriptor, const char* file);
  std::optional<uint64_t> switches();
  void learn_drift();

  pid_t pid_;
  pid_t tid_;
  int most_kept_;  // descriptors from this number on are closed after use
  Descriptor schedstat_, syscall_, stat_, sched_;
  bool syscall_readable_ = true;
  bool has_schedstat_ = true;
  bool has_sched_ = true;
  SwitchDrift drift_;
  bool drift_wanted_ = false;
  char buffer_[1024];
};

}  // namespace phlox::process
