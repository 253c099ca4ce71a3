// The samples of the last seconds, and the rows that they refer to, as the sink of a recording gets them.
// Parts of it are profiles of their own, for the code that judges a recording. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <string>

#include "phlox/profile/profile.h"

namespace phlox::incidents {

class Recent {
 public:
  // Whatever the window is: more than a busy host has in 20 s.
  static constexpr size_t kMostSamples = 300'000;

  explicit Recent(Nanoseconds window) : window_(window) {}

  // Rows that are no samples. A thread's kernel name is kept only if it is its own: a new thread has that of
  // its process.
  void receive(const profile::AnyRow& row);
  // How much it has grown since it was last put: the new wall and CPU time, in a copy.
  profile::Sample put(profile::SampleId id, const profile::Sample& sample);

  // The end of the newest sample; 0: there is none.
  Nanoseconds newest() const { return newest_; }
  // None for an id that is not known.
  const profile::Process* process(profile::ProcessId id) const;
  const profile::Thread* thread(profile::ThreadId id) const;
  bool is_aarch64() const;
  size_t samples() const { return samples_.size(); }

  // A profile of these samples, which end after `from`. `process`: its counters are in it too.
  profile::Profile part(Nanoseconds from, profile::ProcessId process,
                        const std::function<bool(const profile::Sample&)>& takes) const;
  // All processes and threads, without samples.
  profile::Profile rows_without_samples() const;

 private:
  void take(profile::ThreadId id, profile::Thread thread);

  Nanoseconds window_;
  profile::Profile known_;
  uint32_t first_ = 0;  // the id of the first of `samples_`; the others follow without a gap
  std::deque<profile::Sample> samples_;
  std::map<profile::ProcessId, std::map<std::string, int64_t>> counters_;
  std::map<profile::ProcessId, std::string> kernel_names_;  // of processes: those of their first threads
  Nanoseconds newest_ = 0;
};

}  // namespace phlox::incidents
