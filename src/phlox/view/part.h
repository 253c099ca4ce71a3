// Copies some samples of a profile into another, with the rows that these need and no others. Ids count up
// from 1 again. Wakers and wait targets are left out. Pure.
#pragma once

#include <tsl/robin_map.h>

#include <cstdint>
#include <string>
#include <vector>

#include "phlox/base/spread.h"
#include "phlox/profile/profile.h"

namespace phlox::view {

class PartCopy {
 public:
  // Facts of the whole recording are copied at once. Both must outlive this.
  PartCopy(const profile::Profile& from, profile::Profile& into);

  // Of `from`, or a sum of its samples.
  void put(profile::Sample sample);
  void put(profile::TraceTime time);
  // The id in `into` of a row of `from`, which is copied if it is not there yet. None: there is no such row.
  profile::ProcessId process(profile::ProcessId id);
  profile::ThreadId thread(profile::ThreadId id);
  profile::FrameId frame(profile::FrameId id);
  // The ids of each process that was copied: in `from`, and in `into`.
  template <class Call>
  void each_process(Call&& call) const {
    for (const auto& [old, fresh] : processes_) call(profile::ProcessId(old), fresh);
  }

 private:
  template <class RowId>
  using Renumbered = tsl::robin_map<uint32_t, RowId, Spread>;

  profile::ModuleId module(profile::ModuleId id);
  profile::StackId stack(profile::StackId id);
  void put_inlined(profile::FrameId into);
  void put_facts(profile::ProcessId old, profile::ProcessId fresh);

  const profile::Profile& from_;
  profile::Profile& into_;
  uint32_t samples_ = 0, trace_times_ = 0;
  Renumbered<profile::ProcessId> processes_;
  Renumbered<profile::ThreadId> threads_;
  Renumbered<profile::ModuleId> modules_;
  Renumbered<profile::FrameId> frames_;
  Renumbered<profile::FrameId> inlined_;  // rows of `from`, by the frame at which they were inlined
  Renumbered<profile::StackId> stacks_;
};

// One profile for each process that has samples, in the order of their ids. What is shown stays the same.
std::vector<profile::Profile> by_process(const profile::Profile& profile);

}  // namespace phlox::view
