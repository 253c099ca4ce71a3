// Tasks that were ready to run and waited for their turn, as censuses found them: what the loop's thread did
// at that moment. Pure.
#pragma once

#include <map>
#include <vector>

#include "phlox/profile/profile.h"
#include "phlox/profile/task_time.h"
#include "phlox/report/report.h"
#include "phlox/report/table.h"
#include "phlox/view/loop_stalls.h"
#include "phlox/view/sample_filter.h"

namespace phlox::report {

// What one thread did when.
class ThreadMoments {
 public:
  ThreadMoments(const profile::Profile& profile, profile::ThreadId thread);
  // nullptr: not known.
  const profile::Sample* at(Nanoseconds time) const;
  // The blocked interval of exactly this length between two moments; nullptr: there is none.
  const profile::Sample* wait_of(Nanoseconds wall, Nanoseconds from, Nanoseconds to) const;

 private:
  const std::vector<profile::Sample>& samples_;
  std::vector<uint32_t> rows_;
};

// Of each loop whose thread is known: what its thread did then, the most ready tasks first. `filter`: must
// judge.
std::map<profile::EventLoopId, std::vector<ReadyRow>> ready_rows(const profile::Profile& profile,
                                                                 const view::SampleFilter& filter,
                                                                 const profile::TaskRows& tasks);

// Censuses of one thread's loops that found ready tasks, by time.
using ReadyOfThread = std::map<profile::ThreadId, std::vector<profile::ReadyTasks>>;
ReadyOfThread ready_of_threads(const profile::TaskRows& tasks);
// Fills StallRow::ready and ready_for. `start`: of the recording. `moments`: of the loop's thread.
void put_ready(StallRow& row, Nanoseconds start, const std::vector<profile::ReadyTasks>& ready,
               const ThreadMoments& moments);

// Empty: hardly a task waited for its turn.
Table ready_table(const LoopAwaitRow& loop);

}  // namespace phlox::report
