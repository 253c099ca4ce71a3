// Reads the tasks of a program's event loops, now and then, while it runs: a census. At random moments, so
// that no program runs in step; half as often as threads are sampled, up to kMostOften, and less often where
// censuses would cost more than their share of --max-overhead. A program that has not run since the last
// census is not read again. Called by the recorder's thread, which can do something else every few
// milliseconds of it.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "phlox/base/clock.h"
#include "phlox/memory/remote_memory.h"
#include "phlox/process/process_clock.h"
#include "phlox/profile/task_time.h"
#include "phlox/python/interpreter.h"
#include "phlox/python/known_modules.h"
#include "phlox/python/page_memory.h"
#include "phlox/sampler/capture/schedule.h"
#include "phlox/sampler/session/task_sums.h"

namespace phlox::sampler {

class Host;

// When the next census is due. Pure.
class CensusPace {
 public:
  // While there are tasks. Await time of short waits has an error in proportion to this pause.
  static constexpr Nanoseconds kMostOften = kSecond / 50, kLeastOften = kSecond / 10;
  // While there is no task: programs without an event loop cost next to nothing. Not in the first seconds of
  // a recording, in which the first tasks of a program begin: when they did is known to half a pause.
  static constexpr Nanoseconds kRarely = kSecond / 2, kFirst = 5 * kSecond;
  // How long after the last change the pauses become longer where nothing happens. Not at once: a pause that
  // depends on what the program has just done makes the sums wrong. With long pauses in each idle time, the
  // first tasks after it count too little.
  static constexpr Nanoseconds kIdle = 60 * kSecond;
  // Of --max-overhead. Reading takes a CPU of Phlox's and none of the program's, but that may be the same.
  // The fewer tasks a census finds, the larger is the error of the sums.
  static constexpr double kShare = 0.5, kShareOfFew = 1;
  static constexpr size_t kFew = 100;
  // Without a budget: of one CPU.
  static constexpr double kMost = 0.25;

  struct Taken {
    Nanoseconds cost = 0;
    size_t tasks = 0;
    bool unchanged = false;  // the program has not run since the last one
  };

  CensusPace(std::optional<double> max_overhead_percent, double rate_hz, uint64_t seed, Nanoseconds begin);

  Nanoseconds due() const { return due_; }
  void taken(Nanoseconds now, const Taken& census);

 private:
  Nanoseconds begin_, every_;
  std::optional<double> budget_;  // of one CPU
  Schedule schedule_;
  Nanoseconds due_ = 0;
  std::optional<Nanoseconds> changed_;  // when a census last found tasks that it had to read
  std::optional<Nanoseconds> cost_;     // a mean, later ones count more
};

class TaskCensus {
 public:
  TaskCensus(Host& host, profile::ProcessId process, Nanoseconds begin,
             const python::Interpreter& interpreter, memory::RemoteMemory& memory,
             const process::ProcessClock& clock, profile::TaskSink& sink, profile::Interner& interner,
             TaskRowIds& ids, std::optional<double> max_overhead_percent, double rate_hz);

  Nanoseconds due() const { return pace_.due(); }
  // Whether it is worth waking up for the next one.
  bool has_tasks() const { return any_; }
  // `between`: as in TaskSources; its time is not the census's.
  void take(Nanoseconds now, const TaskSums::ThreadOf& thread_of, const std::function<void()>& between);
  // The program ended at `now`, or called execve: the tasks of the last census were there until then.
  void end(Nanoseconds now);
  // The rows that have grown.
  void put();

 private:
  bool is_as_it_was(std::optional<Nanoseconds> used);
  void read(Nanoseconds weight, const TaskSums::ThreadOf& thread_of, const std::function<void()>& between);

  Host& host_;
  const python::Interpreter& interpreter_;
  memory::RemoteMemory& memory_;
  std::optional<python::PageMemory> pages_;  // once there may be tasks
  const process::ProcessClock& clock_;
  profile::TaskSink& sink_;
  profile::TaskCensusId id_;
  TaskRowIds& ids_;
  TaskSums sums_;
  CensusPace pace_;
  Nanoseconds last_;
  std::optional<Nanoseconds> used_;  // CPU time of the program before the last census that read it
  bool imported_ = true;             // AsyncTasks::imported of that census
  uint64_t stamp_ = 0;               // and of the modules before it
  python::KnownModules known_;
  int not_read_ = 0;  // censuses since
  profile::TaskCensus last_counts_, counts_;
  uint64_t put_ = 0;  // of counts_.times; 0: they have grown
  bool any_ = false, not_first_ = false;
};

}  // namespace phlox::sampler
