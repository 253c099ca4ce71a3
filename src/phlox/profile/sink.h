// Where new rows go. The sampler's consumer interns what it saw and tells a Sink about each new row once, in
// an order in which nothing refers to a row that was not put before. The recording's writer is a Sink; so is
// the Profile in memory. One thread calls it. Never blocks on the target.
#pragma once

#include <string_view>

#include "phlox/base/result.h"
#include "phlox/profile/model.h"

namespace phlox::profile {

class Sink {
 public:
  virtual ~Sink() = default;

  // Ids are given by the caller, counting up from 1 for each kind. put_* of an id seen before replaces that
  // row.
  virtual void put_meta(std::string_view key, std::string_view value) = 0;
  virtual void put_process(ProcessId id, const Process& process) = 0;
  virtual void put_thread(ThreadId id, const Thread& thread) = 0;
  virtual void put_module(ModuleId id, const Module& module) = 0;
  virtual void put_frame(FrameId id, const Frame& frame) = 0;
  virtual void put_stack(StackId id, const Stack& stack) = 0;
  // Only some ways of recording know of any.
  virtual void put_wake(WakeId, const Wake&) {}
  virtual void put_awaited(AwaitedId id, const Awaited& awaited) = 0;
  // A stretch; called again with the same id when it grew.
  virtual void put_sample(SampleId id, const Sample& sample) = 0;
  virtual void put_event(const Event& event) = 0;
  virtual void put_tally(const Tally& tally) = 0;

  // Makes everything put so far durable. Called about four times a second.
  virtual Result<void> commit() = 0;
};

}  // namespace phlox::profile
