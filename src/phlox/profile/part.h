// Copies some samples of a profile into another, with the rows that these need and no others. Ids count up
// from 1 again. Wakers and wait targets are left out. Pure.
#pragma once

#include <tsl/robin_map.h>

#include <cstdint>
#include <string>
#include <vector>

#include "phlox/base/spread.h"
#include "phlox/profile/profile.h"

namespace phlox::profile {

class PartCopy {
 public:
  // Facts of the whole recording are copied at once. Both must outlive this.
  PartCopy(const Profile& from, Profile& into);

  // Of `from`, or a sum of its samples.
  void put(Sample sample);
  // The id in `into` of a row of `from`, which is copied if it is not there yet. None: there is no such row.
  ProcessId process(ProcessId id);
  ThreadId thread(ThreadId id);
  FrameId frame(FrameId id);

 private:
  template <class RowId>
  using Renumbered = tsl::robin_map<uint32_t, RowId, Spread>;

  ModuleId module(ModuleId id);
  StackId stack(StackId id);
  void put_facts(ProcessId old, ProcessId fresh);

  const Profile& from_;
  Profile& into_;
  uint32_t samples_ = 0;
  Renumbered<ProcessId> processes_;
  Renumbered<ThreadId> threads_;
  Renumbered<ModuleId> modules_;
  Renumbered<FrameId> frames_;
  Renumbered<StackId> stacks_;
};

// One profile for each process that has samples, in the order of their ids. What is shown stays the same.
std::vector<Profile> by_process(const Profile& profile);

}  // namespace phlox::profile
