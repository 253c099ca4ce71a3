// What was sampled since the last cut, as a profile of its own: for a program that sends profiles on while it
// records. A sum for each thread, stack and state, so its size does not depend on the length of an interval.
// The sums of all cuts together are those of a recording. One thread calls it. Pure.
//
// What a thread did for a span of a trace is a sum of its own. The samples of such a thread follow one
// another from the begin of the interval: so they have no moment, but lie within the times of their spans.
#pragma once

#include <tsl/robin_map.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "phlox/base/spread.h"
#include "phlox/profile/profile.h"
#include "phlox/view/task_intervals.h"

namespace phlox::view {

class Intervals : public profile::Sink {
 public:
  void receive(const profile::AnyRow& row) override;
  // What was sampled until now gets its traces.
  Result<void> commit() override;
  // Gets what tasks await, which becomes an event of the interval's profile (await_time.h).
  profile::TaskSink& tasks() { return tasks_; }

  struct Moment {
    Nanoseconds monotonic = 0;
    int64_t unix_time = 0;  // ns since 1970
  };
  // Everything since the last cut, up to now; the rows that its samples need are in it. Call it after a
  // commit, when no interval is held back. An interval without samples has no rows. The samples of await
  // time are those of the event that is not shown.
  profile::Profile cut(const Moment& begin, const Moment& end);

  uint64_t samples() const { return samples_; }  // since the beginning
  // Rows that are kept, because later samples may refer to them: they grow as long as new code runs.
  size_t kept_rows() const {
    return known_.frames().size() + known_.stacks().size() + known_.threads().size() +
           known_.processes().size() + tasks_.kept_rows();
  }

 private:
  struct Key {
    uint64_t place = 0;   // thread << 32 | stack
    uint32_t state = 0;   // event << 16 | cpu << 8 | gil
    uint32_t traced = 0;  // a number of ids_; 0: no trace, or not known
    friend auto operator<=>(const Key&, const Key&) = default;
  };
  struct KeyHash {
    size_t operator()(const Key& key) const noexcept {
      return Spread()(key.place ^ (uint64_t{key.traced} << 32 | key.state) * 0x9e3779b97f4a7c15);
    }
  };
  // The row that may still grow: a thread has one for each event (spans.h). Its values as they were last put.
  struct Growing {
    profile::SampleId id;
    Nanoseconds wall = 0, cpu = 0;
    uint32_t samples = 0;
    int64_t value = 0;
    bool quiet = false;  // it did not grow in this interval
  };

  // The times in which a thread worked for spans since the last commit, and the last one before.
  struct Traced {
    profile::TraceTimeId last;
    std::vector<profile::TraceTime> times;
  };

  void add(profile::SampleId id, const profile::Sample& sample);
  void add(profile::TraceTimeId id, const profile::TraceTime& time);
  void sum_up();
  void add_to_sum(const profile::Sample& more, const profile::TraceTime* traced);
  uint32_t number_of(const profile::TraceIds& ids);
  void put_sums(PartCopy& copy, Nanoseconds begin);
  void forget_ended();
  void learn_endpoints(PartCopy& copy, profile::Profile& part, profile::TaskRows& tasks);

  profile::Profile known_;  // without samples
  TaskIntervals tasks_;
  std::vector<profile::Sample> grown_;  // not in the sums yet: what rows have grown by since the last commit
  tsl::robin_map<Key, profile::Sample, KeyHash> sums_;
  tsl::robin_map<uint32_t, Traced, Spread> traced_;    // by thread
  std::map<profile::TraceIds, uint32_t> ids_;          // of this interval, numbered from 1
  tsl::robin_map<uint64_t, Growing, Spread> growing_;  // event << 32 | thread
  uint64_t samples_ = 0;
};

}  // namespace phlox::view
