// What a process says about itself, and where its threads publish the span of a trace that they work for.
// Programs publish both when their SDK starts, and may change them: looks come after twice as long each time.
// Called by the recorder's thread.
#pragma once

#include <sys/types.h>

#include <memory>
#include <optional>
#include <string>

#include "phlox/base/clock.h"
#include "phlox/process/process_context.h"
#include "phlox/process/thread_context.h"
#include "phlox/profile/sink.h"

namespace phlox::sampler {

class ContextWatch {
 public:
  // After the first look, which is due at once.
  static constexpr Nanoseconds kFirst = kSecond, kLongest = 60 * kSecond;

  // `environment`: of the process. Attributes go to the sink as facts of the recording (profile::kResource).
  ContextWatch(pid_t pid, profile::ProcessId id, const std::string& environment, profile::Sink& sink);

  // If it is due. Returns where its threads publish, once, when that is known. Never waits for a file.
  std::optional<process::ThreadVariable> look(Nanoseconds now);

 private:
  struct Search;
  void put(const std::string& published);

  pid_t pid_;
  profile::ProcessId id_;
  std::string environment_, put_;
  profile::Sink& sink_;
  process::ContextReader reader_;
  Nanoseconds due_ = 0, pause_ = kFirst / 2;
  std::shared_ptr<Search> search_;  // null: it does not say that its threads publish
  bool has_variable_ = false;
};

}  // namespace phlox::sampler
