// The samples so far, for `phlox top`: the last seconds as they were, and one sum since the start for each
// thread, stack and state, so that it stays small however long it runs. The recorder's thread writes, another
// one reads.
#pragma once

#include <tsl/robin_map.h>

#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <utility>

#include "phlox/base/spread.h"
#include "phlox/profile/profile.h"

namespace phlox::top {

// One thread or one process of all; neither: everything.
struct Pick {
  std::optional<profile::ThreadId> thread;
  std::optional<profile::ProcessId> process;
  explicit operator bool() const { return thread || process; }
};

// Two small profiles with the rows that their samples need. Threads, processes and modules keep their ids.
struct Seen {
  profile::Profile lately;
  profile::Profile all;         // a sample is a sum, from its first sample on
  Nanoseconds lately_span = 0;  // the length of `lately`
  Nanoseconds all_span = 0;
  Nanoseconds left_out = 0;  // time of threads without stacks in `all`: too many different ones
};

// The picked part of `whole`.
Seen picked(const Seen& whole, const Pick& pick);

class Model : public profile::Sink {
 public:
  // The maximum number of sums since the start: some 30 MB.
  static constexpr size_t kMostSums = 200'000;

  explicit Model(Nanoseconds window, size_t most_sums = kMostSums) : window_(window), most_sums_(most_sums) {}

  void receive(const profile::AnyRow& row) override;
  Result<void> commit() override { return {}; }

  Seen seen() const;

 private:
  struct Row {
    profile::SampleId id;
    profile::Sample sample;
  };
  using Key = std::pair<uint64_t, uint64_t>;  // thread and stack, state
  struct KeyHash {
    size_t operator()(const Key& key) const noexcept {
      return Spread()(key.first ^ key.second * 0x9e3779b97f4a7c15);
    }
  };

  void add(profile::SampleId id, const profile::Sample& sample);
  void add(const profile::Sample& sample, Nanoseconds wall, Nanoseconds cpu, uint32_t samples);

  const Nanoseconds window_;
  const size_t most_sums_;
  mutable std::mutex mutex_;
  profile::Profile rows_;  // without samples
  std::deque<Row> lately_;
  tsl::robin_map<Key, profile::Sample, KeyHash> sums_;
  std::optional<Nanoseconds> first_;
  Nanoseconds last_ = 0;
  Nanoseconds left_out_ = 0;
};

}  // namespace phlox::top
