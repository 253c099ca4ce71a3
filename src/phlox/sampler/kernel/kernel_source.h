// One program of a process, sampled inside the kernel: makes samples of the capture's records about its
// threads. The scheduler accounts for a thread's time running, blocked and waiting for a CPU, to the
// nanosecond. Each piece goes to a stack of the thread: time on the CPU to a sample of the clock, time off it
// to the stack with which the thread left its CPU. Pure but for its first samples: gets records and the time.
// Called by the recorder's thread.
#pragma once

#include <sys/types.h>

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "phlox/memory/remote_memory.h"
#include "phlox/python/interpreter.h"
#include "phlox/sampler/kernel/code_files.h"
#include "phlox/sampler/kernel/kernel_records.h"
#include "phlox/sampler/kernel/kernel_stacks.h"
#include "phlox/sampler/kernel/native_halves.h"
#include "phlox/sampler/kernel/parked_threads.h"
#include "phlox/sampler/observe/counts.h"
#include "phlox/sampler/observe/ring.h"
#include "phlox/sampler/observe/sample_log.h"
#include "phlox/sampler/observe/sample_source.h"
#include "phlox/sampler/observe/trace_numbers.h"

namespace phlox::sampler {

class KernelSource {
 public:
  // `memory`: of the process, for the names of its interpreters. `native`: whether stacks have a native half,
  // and threads that run no Python are sampled. `renew`: makes the kernel send everything about it again,
  // because it was dropped here. `begin`: since when its threads are sampled.
  KernelSource(const python::Interpreter& interpreter, memory::RemoteMemory& memory, Ring& ring, bool native,
               std::function<void()> renew, Nanoseconds begin = clock_now());

  // Threads that were blocked before the kernel was asked, and have not been on a CPU since: no record would
  // have their place.
  void begin(const ParkedThreads& parked, Nanoseconds now);
  // Its threads existed before, and the kernel has kept their sums: samples report the additions to these.
  // The CPU time of its first thread until now, except `reported_before`, is reported with its beginning.
  // Call before begin().
  void go_on_from(pid_t first, uint64_t reported_before, std::unordered_map<pid_t, kernel_thread> sums);
  // Names the libraries in which threads were found. Without native halves; `files` must outlive it.
  void with_code_files(CodeFiles& files) { code_files_ = &files; }
  // Its process id, by which its own threads are recognised as wakers. Before the first record.
  void of_process(pid_t process) { process_ = process; }
  // The kernel's records about it, in order.
  void take(const KernelSample& record);
  void take(const KernelCode& record) { stacks_.take(record); }
  void take(const KernelNative& record) { halves_.take(record); }
  void take(const KernelWaitTarget& record);
  void take(const kernel_trace& record);
  void take(const kernel_exit& record);
  void take(const kernel_signal& record);
  // Asks the kernel by `ask` about threads without recent records: a long wait is reported as it grows.
  // `heard_until`: all records until then were taken.
  template <class Ask>
  void ask_after_silent(Nanoseconds now, Nanoseconds heard_until, Ask ask) {
    for (auto& [tid, thread] : threads_) {
      if (now - thread->last_time < kSilence) continue;
      still(tid, *thread, now, heard_until, ask(tid));
    }
    flush();
  }
  // Reads waits from outside, by `read`, if the kernel did not read their stacks and they last some time.
  template <class Ask, class Read>
  void read_long_waits(Nanoseconds now, Ask ask, Read read) {
    std::vector<pid_t> unread;
    size_t asked = 0;
    for (auto& [tid, thread] : threads_) {
      if (now - thread->last_time < kReadAfter) continue;
      if (++asked > kMostAsked || unread.size() >= kMostRead) break;
      if (is_unread(*thread, now, ask(tid))) unread.push_back(tid);
    }
    if (!unread.empty()) keep_read(read(std::span<const pid_t>(unread)), ask);
  }
  // The time between two samples of the clock; not called: not known.
  void set_interval(Nanoseconds interval) { interval_ = interval; }
  // Whether there was a recent wait whose stack the kernel did not read.
  bool has_unread_waits(Nanoseconds now) const { return unread_until_ > 0 && now - unread_until_ < kSecond; }
  // The process is no longer sampled, since `now`; all records were taken. Reports the rest: of a wait or of
  // a run, and waits that were too short to be reported by themselves.
  template <class Ask>
  void end_all(Nanoseconds now, Ask ask) {
    for (auto& [tid, thread] : threads_) {
      close(tid, *thread, now, ask(tid));
      end(*thread, now);
    }
    threads_.clear();
  }
  // The kernel restarts with this process: counts, code objects, stacks.
  void renewed();

  // Counts of samples, codes and frames; not of time.
  Counts counts() const;
  uint64_t samples() const { return samples_; }
  Nanoseconds began() const { return begin_; }
  // The end of its last thread, and the CPU time of its first: complete when the process has ended.
  const std::optional<SampleSource::End>& end() const { return end_; }

 private:
  static constexpr Nanoseconds kSilence = kSecond / 10;
  // A wait this long is read from outside, if the kernel did not read it.
  static constexpr Nanoseconds kReadAfter = kSecond / 50;
  // The largest numbers of threads that are checked and read from outside at once, and of their code objects
  // that are kept.
  static constexpr size_t kMostAsked = 500, kMostRead = 16, kMostParkedCodes = 50'000;

  struct Thread : ReportedThread {
    uint64_t ran = 0, blocked = 0, queued = 0;  // as last reported
    bool counted = false;                       // these are from the kernel
    // The last samples that found it on a CPU, and off it.
    std::optional<ThreadSample> awake, asleep;
    bool runs_python = false;  // a sample has found it with a thread state
    std::vector<CodeLocation> awake_stack, asleep_stack;
    // From its last reported wait; whether that was for the GIL, and another thread ended it.
    Nanoseconds came_back = 0;
    Nanoseconds slept_until = 0;  // `asleep`
    bool wanted_gil = false, handed_gil = false;
    // By NativePlace: the native half whose stack the consumer keeps, and its number.
    struct Sent {
      uint64_t time = 0;
      uint32_t id = 0;
    };
    std::array<Sent, 4> native;
    // The target of the wait that began then, by the number that the consumer knows.
    uint64_t wait_target_since = 0;
    uint32_t wait_target = 0;
    // Too short to be reported by itself; goes with the next.
    Nanoseconds owed_awake = 0, owed_asleep = 0;
    // How often the wait that began then was read from outside; `stack` is empty if that failed.
    struct FromOutside {
      uint64_t since = 0;
      int tries = 0;
      profile::GilState gil = profile::GilState::none;
      profile::Quality quality = profile::Quality::ok;
      std::optional<profile::TraceIds> trace;
      std::vector<CodeLocation> stack;
    } outside;
  };
  // Since the last record.
  struct Spent {
    Nanoseconds ran = 0, blocked = 0, queued = 0;
    Nanoseconds window = 0;
  };

  Thread* thread_of(const KernelSample& record);
  Thread& begin_thread(pid_t tid, uint64_t python_id, int64_t interpreter, Nanoseconds now);
  Thread& meets_python(pid_t tid, const KernelSample& record);
  int64_t interpreter_id(uint64_t address);
  uint32_t code_file_of(const kernel_sample& sample);
  Spent spent(Thread& thread, const kernel_sample& sample);
  void found_running(Thread& thread, const kernel_sample& sample, const Spent& spent,
                     profile::Quality quality, const std::vector<CodeLocation>& stack);
  void came_back(Thread& thread, const KernelSample& record, const Spent& spent, profile::Quality quality,
                 const std::vector<CodeLocation>& stack);
  void put_run(Thread& thread, const ThreadSample& left, bool held, Nanoseconds ran,
               const std::vector<CodeLocation>& stack, const NativeParts& native);
  // kernel_source_waits.cpp
  uint32_t waker_of(const kernel_sample& sample);
  uint32_t index_of_waker(const kernel_sample& sample) const;
  uint32_t wait_target_of(const Thread& thread, const kernel_sample& sample);
  uint32_t number_of(WaitTargetRecord record, const std::string& name);
  uint32_t trace_of(const Thread& thread, const kernel_sample& sample);
  // kernel_source_unreported.cpp
  void put_short_waits(Thread& thread, Nanoseconds time, ThreadSample run,
                       const std::vector<CodeLocation>& stack, const NativeParts& native);
  void still(pid_t tid, Thread& thread, Nanoseconds now, Nanoseconds heard_until,
             const std::optional<kernel_thread>& known);
  void close(pid_t tid, Thread& thread, Nanoseconds now, const std::optional<kernel_thread>& known);
  void put_last(Thread& thread, const kernel_sample& sample);
  bool is_unread(Thread& thread, Nanoseconds now, const std::optional<kernel_thread>& known) const;
  template <class Ask>
  void keep_read(const ParkedThreads& found, Ask ask) {
    const std::vector<uint32_t> codes = tell_codes(found);
    for (const auto& one : found.threads) {
      const auto thread = threads_.find(one.tid);
      // Still the same wait: this is its stack.
      const auto known = ask(one.tid);
      if (thread == threads_.end() || !known || known->state != KERNEL_BLOCKED ||
          known->off.since != thread->second->outside.since)
        continue;
      thread->second->outside.gil = one.gil;
      thread->second->outside.quality = one.quality;
      thread->second->outside.trace = one.trace;
      thread->second->outside.stack = stack_of(one, codes);
    }
  }
  std::vector<uint32_t> tell_codes(const ParkedThreads& parked);
  static std::vector<CodeLocation> stack_of(const ParkedThreads::Thread& parked,
                                            const std::vector<uint32_t>& codes);
  void end(Thread& thread, Nanoseconds now);
  enum class Piece { sample, part };  // part: of the time before a sample, and not a sample itself
  // `native`: goes with the first piece of this sample; from then on the consumer keeps it.
  void put(Thread& thread, Piece piece, ThreadSample& sample, Nanoseconds wall,
           const std::vector<CodeLocation>& stack, const NativeParts& native = {});
  NativeParts native_of(Thread& thread, const kernel_sample& from, NativePlace place,
                        const std::vector<CodeLocation>& stack, ThreadSample& sample);
  ThreadSample sample_of(const Thread& thread, const kernel_sample& sample, profile::Quality quality);
  void count(profile::Quality quality);
  void flush();

  const python::Layout& layout_;
  memory::RemoteMemory& memory_;
  Ring& ring_;
  SampleLog log_;
  bool native_;
  NativeHalves halves_;
  uint32_t next_native_ = 1;
  // Numbers of code objects that were read from outside.
  std::unordered_map<uint64_t, uint32_t> parked_codes_;
  KernelStacks stacks_;
  std::unordered_map<pid_t, std::unique_ptr<Thread>> threads_;
  // Ended threads, which may still be named as wakers.
  struct Ended {
    uint32_t index = 0;
    Nanoseconds time = 0;
  };
  std::unordered_map<pid_t, Ended> ended_;
  // Threads that have no record yet.
  std::unordered_map<pid_t, kernel_thread> sums_;
  pid_t first_ = 0, process_ = 0;
  uint64_t reported_before_ = 0;
  std::unordered_map<uint64_t, int64_t> interpreters_;
  // Numbers of wakers: by our thread and stack, by others' names.
  std::map<std::tuple<uint32_t, uint64_t, std::string>, uint32_t> wakers_;
  // Numbers of wait targets.
  std::map<std::tuple<WaitTargetRecord::What, int32_t, process::OpenFile, std::string>, uint32_t>
      wait_targets_;
  // The span that a thread worked for last, by the kernel's number.
  struct Trace {
    uint32_t number = 0;
    profile::TraceIds ids;
  };
  std::unordered_map<pid_t, Trace> traces_;
  TraceNumbers trace_numbers_{log_};
  CodeFiles* code_files_ = nullptr;
  uint32_t code_files_reported_ = 0;
  Counts counts_;
  uint64_t samples_ = 0;
  uint32_t next_thread_ = 1;
  Nanoseconds begin_ = 0, unread_until_ = 0;
  Nanoseconds interval_ = 0;
  std::optional<SampleSource::End> end_;
};

}  // namespace phlox::sampler
