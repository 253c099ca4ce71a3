// What the recorded processes say about themselves, for the profiles that phlox agent sends: their
// environment, and the context that they publish (process/process_context.h), which may come late and change.
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>
#include <unordered_map>

#include "phlox/base/clock.h"
#include "phlox/process/process_context.h"
#include "phlox/profile/model.h"

namespace phlox::cli {

class ProcessResources {
 public:
  // How long after the last look the next one is due: twice as long each time.
  static constexpr Nanoseconds kFirst = 2 * kSecond, kLongest = 60 * kSecond;

  // As view::resource_text() has it.
  using Put = std::function<void(profile::ProcessId, const std::string& text)>;

  // While the process still exists.
  void meet(profile::ProcessId id, pid_t pid, Nanoseconds now, const Put& put);
  // Its process id may soon be another one's.
  void forget(profile::ProcessId id) { known_.erase(id.value); }
  void look(Nanoseconds now, const Put& put);

 private:
  struct Known {
    process::ContextReader reader;
    std::string environment;
    Nanoseconds pause = kFirst, due = 0;
  };
  static std::string read_new(Known& known);

  std::unordered_map<uint32_t, Known> known_;
};

}  // namespace phlox::cli
