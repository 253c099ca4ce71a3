// Receives new rows. The sampler's consumer interns its records and reports each new row to a Sink once. Rows
// come in an order in which no row refers to a later one. The recording's writer is a Sink; so is the Profile
// in memory. One thread calls it. Never blocks on the target.
#pragma once

#include <string_view>

#include "phlox/base/result.h"
#include "phlox/profile/model.h"

namespace phlox::profile {

class Sink {
 public:
  virtual ~Sink() = default;

  // The caller gives the ids, counting up from 1 for each kind. put_* with a known id replaces that row.
  virtual void put_meta(std::string_view key, std::string_view value) = 0;
  virtual void put_process(ProcessId id, const Process& process) = 0;
  virtual void put_thread(ThreadId id, const Thread& thread) = 0;
  virtual void put_module(ModuleId id, const Module& module) = 0;
  virtual void put_frame(FrameId id, const Frame& frame) = 0;
  virtual void put_stack(StackId id, const Stack& stack) = 0;
  // Only some modes know wakers.
  virtual void put_wake(WakeId, const Wake&) {}
  virtual void put_awaited(AwaitedId id, const Awaited& awaited) = 0;
  // An interval; called again with the same id when it grows.
  virtual void put_sample(SampleId id, const Sample& sample) = 0;
  virtual void put_event(const Event& event) = 0;
  virtual void put_tally(const Tally& tally) = 0;

  // Makes all rows so far durable. Called about four times a second.
  virtual Result<void> commit() = 0;
};

}  // namespace phlox::profile
