#include "phlox/importers/perf_threads.h"

#include <algorithm>

namespace phlox::importers {
namespace {

// Processes whose caches are kept; with more processes, only those of recently seen ones.
constexpr size_t kMostAwake = 64;
constexpr uint64_t kLately = 10'000;
// Limits a file that makes up threads.
constexpr size_t kMostThreads = 4'000'000;
// Ancestors in a row that have not been sampled.
constexpr size_t kMostParents = 64;
// The kernel's idle thread, one for each CPU, all with number 0; perf records no name for it
// (kernel/sched/core.c: init_idle; tools/perf/util/machine.c).
constexpr const char* kIdleThread = "swapper";

}  // namespace

PerfProcess& PerfThreads::process(pid_t pid) {
  auto& process = processes_[pid];
  if (!process) process = std::make_unique<Process>(pid, file_.machine(), files_);
  process->used = ++uses_;
  if (processes_.size() > kMostAwake && uses_ % kLately == 0) {
    for (auto& [_, other] : processes_) {
      if (other->used + kLately < uses_) other->space.rest();
    }
  }
  return process->space;
}

PerfThreads::Process& PerfThreads::process_row(pid_t pid, Nanoseconds time, bool parents) {
  process(pid);
  Process& process = *processes_[pid];
  const std::string& program = process.space.program();
  const bool renamed = !program.empty() && process.row.executable != program;
  if (*process.id && !renamed) return process;
  if (!*process.id) {
    if (parents) put_parents(process, time);
    if (process.parent && *process.parent) process.row.parent = *process.parent;
    *process.id = profile::ProcessId(++last_process_);
    if (begin_ == 0) begin_ = time;
    // Otherwise its start is unknown: it existed when perf began.
    if (process.row.start == 0) process.row.start = begin_;
    process.row.pid = process.row.namespace_pid = pid;
    process.row.mode = "perf record";
    // Kernel threads have no program.
    const auto main = threads_.find(pid);
    if (program.empty() && main != threads_.end()) process.row.executable = main->second.row.kernel_name;
  }
  if (!program.empty()) process.row.executable = program;
  sink_.emit(*process.id, process.row);
  return process;
}

void PerfThreads::put_parents(const Process& child, Nanoseconds time) {
  // The topmost first. For processes that existed when perf began, it is unknown whether they were recorded.
  std::vector<pid_t> without_row;
  const Process* one = &child;
  while (one->parent && !*one->parent && one->row.start != 0 && without_row.size() < kMostParents) {
    const auto found = processes_.find(one->parent_pid);
    if (found == processes_.end() || found->second->id != one->parent) break;
    without_row.push_back(one->parent_pid);
    one = found->second.get();
  }
  for (; !without_row.empty(); without_row.pop_back()) process_row(without_row.back(), time, false);
}

PerfThreads::Thread& PerfThreads::known_thread(pid_t pid, pid_t tid) {
  if (threads_.size() >= kMostThreads && !threads_.contains(tid)) tid = -1;
  Thread& thread = threads_[tid];
  thread.row.tid = tid;
  if (tid == 0) thread.row.kernel_name = kIdleThread;
  static_cast<void>(pid);
  return thread;
}

PerfThreads::Thread& PerfThreads::thread_row(pid_t pid, pid_t tid, Nanoseconds time) {
  Thread& thread = known_thread(pid, tid);  // first: a process without a program is named after its thread
  Process& process = process_row(pid, time);
  if (thread.id) return thread;
  thread.id = profile::ThreadId(++last_thread_);
  thread.row.process = *process.id;
  thread.row.start = time;
  sink_.emit(thread.id, thread.row);
  return thread;
}

void PerfThreads::fork(const perf::TaskRecord& record, bool copied) {
  // The id of an ended thread is reused.
  const std::string name = known_thread(record.parent_pid, record.parent_tid).row.kernel_name;
  if (const auto old = threads_.find(record.tid); old != threads_.end()) {
    spans_.close(old->second.id);
    threads_.erase(old);
  }
  known_thread(record.pid, record.tid).row.kernel_name = name;
  if (record.pid == record.parent_pid || record.pid != record.tid) return;
  if (const auto old = processes_.find(record.pid); old != processes_.end()) {
    tell_python(*old->second);
    processes_.erase(old);
  }
  process(record.pid);
  process(record.parent_pid);
  Process& child = *processes_[record.pid];
  const Process& parent = *processes_[record.parent_pid];
  child.parent = parent.id;
  child.parent_pid = record.parent_pid;
  child.row.start = record.time;
  if (copied) child.space.inherit(parent.space);
}

void PerfThreads::end(const perf::TaskRecord& record) {
  if (const auto process = processes_.find(record.pid);
      process != processes_.end() && record.tid == record.pid) {
    process->second->row.end = std::max(record.time, process->second->row.start);
    process->second->row.how_ended = "exited";  // the record has no status
    if (*process->second->id) sink_.emit(*process->second->id, process->second->row);
  }
  const auto found = threads_.find(record.tid);
  if (found == threads_.end()) return;
  Thread& thread = found->second;
  thread.ended = true;
  if (!thread.id) return;
  thread.row.end = record.time;
  sink_.emit(thread.id, thread.row);
}

void PerfThreads::name(const perf::NameRecord& record, Nanoseconds) {
  if (record.exec) {
    PerfProcess& space = process(record.pid);
    space.clear();
  }
  Thread& thread = known_thread(record.pid, record.tid);
  thread.row.kernel_name = record.name;
  if (thread.id) sink_.emit(thread.id, thread.row);
}

void PerfThreads::map(const perf::MapRecord& record) {
  process(record.pid).map(record);
}

void PerfThreads::put(Thread& thread, profile::Sample sample, Nanoseconds from, Nanoseconds wall,
                      Nanoseconds cpu, profile::CpuState state) {
  sample.thread = thread.id;
  sample.start = from;
  sample.wall = std::max<Nanoseconds>(wall, 0);
  sample.cpu = std::max<Nanoseconds>(cpu, 0);
  sample.cpu_state = state;
  spans_.add(sample);
}

void PerfThreads::put_sleep(Thread& thread, Nanoseconds until) {
  put(thread, thread.off, thread.off_since, until - thread.off_since, 0, thread.off.cpu_state);
  thread.off_since = 0;
}

void PerfThreads::counted(pid_t pid, pid_t tid, Nanoseconds time, Nanoseconds period,
                          const profile::Sample& sample) {
  put(thread_row(pid, tid, time), sample, time - period, period, period, profile::CpuState::running);
}

void PerfThreads::switched_in(pid_t pid, pid_t tid, Nanoseconds time) {
  if (tid == 0) return;  // the idle thread of every CPU
  const auto found = threads_.find(tid);
  if (found == threads_.end() || !found->second.id) {
    if (switches_ != Switches::both) return;
  }
  Thread& thread = thread_row(pid, tid, time);
  if (thread.off_since != 0) put_sleep(thread, time);
  thread.until = time;
  thread.last.reset();
}

void PerfThreads::switched_out(pid_t pid, pid_t tid, Nanoseconds time, bool preempted,
                               const profile::Sample& asleep, bool has_stack) {
  if (tid == 0) return;
  Thread& thread = thread_row(pid, tid, time);
  if (thread.off_since != 0) {
    // Recorded twice: by a tracepoint, and by the kernel's own record after it.
    if (switches_ == Switches::both) return;
    // It was switched to at an unknown time: less than one clock period ago.
    put_sleep(thread, time);
  } else if (thread.until != 0) {
    profile::Sample ran = has_stack ? asleep : thread.last.value_or(profile::Sample());
    ran.samples = 0;
    ran.value = 0;
    ran.event = asleep.event;
    put(thread, ran, thread.until, time - thread.until, time - thread.until, profile::CpuState::running);
    thread.ran_since_clock += time - thread.until;
  }
  thread.until = 0;
  thread.last.reset();
  if (thread.ended) return;
  thread.off_since = time;
  thread.off = asleep;
  thread.off.system_call = preempted ? int16_t{-1} : profile::kCallNotRecorded;
  thread.off.cpu_state = preempted ? profile::CpuState::runnable : profile::CpuState::blocked;
}

void PerfThreads::sampled(pid_t pid, pid_t tid, Nanoseconds time, Nanoseconds period,
                          profile::Sample sample) {
  Thread& thread = thread_row(pid, tid, time);
  if (switches_ == Switches::none || tid == 0) {
    // Clocks tick slightly early or late; a span continues where the previous one ended.
    Nanoseconds from = time - period;
    if (thread.until != 0 && std::abs(from - thread.until) <= period / 2) from = thread.until;
    put(thread, sample, from, period, period, profile::CpuState::running);
    thread.until = period > 0 ? from + period : thread.until;
    return;
  }
  if (thread.off_since != 0) {
    // The time of the switch is unknown; a clock that ticks with the thread's CPU time reveals it.
    const Nanoseconds ran = std::max<Nanoseconds>(period - thread.ran_since_clock, 0);
    thread.until = std::max(thread.off_since, time - ran);
    put_sleep(thread, thread.until);
  }
  const Nanoseconds ran = thread.until == 0 ? 0 : time - thread.until;
  put(thread, sample, time - ran, ran, ran, profile::CpuState::running);
  thread.ran_since_clock = period > 0 ? 0 : thread.ran_since_clock + ran;
  thread.until = time;
  thread.last = sample;
}

void PerfThreads::finish(Nanoseconds end) {
  for (auto& [_, thread] : threads_) {
    if (thread.id && thread.off_since != 0 && !thread.ended && end > thread.off_since) put_sleep(thread, end);
  }
  spans_.flush();
}

void PerfThreads::tell_python(Process& process) {
  if (!*process.id) return;
  process.row.python_version = process.space.python();
  if (process.row.python_version.empty()) return;
  sink_.emit(*process.id, process.row);
  PerfProcess& space = process.space;
  if (space.tells_python()) {
    python_stacks_.of_telling += space.stacks();
    python_stacks_.with_function += space.python_stacks();
  } else {
    python_stacks_.of_silent += space.stacks();
  }
}

void PerfThreads::tell_pythons() {
  for (auto& [_, process] : processes_) tell_python(*process);
}

}  // namespace phlox::importers
