// What `--on` and its options ask for, checked before anything starts. Used by record and agent. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "phlox/base/result.h"
#include "phlox/cli/arguments.h"
#include "phlox/incidents/condition.h"

namespace phlox::cli {

struct TriggerRequest {
  // Rows of an incident's end are committed by then, also those of sleeping processes.
  static constexpr Nanoseconds kRowsSettled = 2 * kSecond;

  std::vector<incidents::Condition> conditions;  // empty: no --on
  std::string folder;
  Nanoseconds before = 30 * kSecond, after = 10 * kSecond;
  size_t most_an_hour = 4;
  uint64_t most_bytes = 1'000'000'000;

  explicit operator bool() const { return !conditions.empty(); }
  bool takes_signal(int number) const;
  std::string recording() const { return folder + "/recording.phlox"; }
  // Of the recording that is kept: an incident is complete if it holds this much.
  Nanoseconds least_kept() const;
};

// ErrorKind::usage: options that need --on, without it.
Result<void> check_trigger_use(const TriggerArguments& arguments);
// `output`: the value of -o, which must be a folder's name.
Result<TriggerRequest> trigger_request_of(const CommandLine& line, const TriggerArguments& arguments,
                                          const std::string& output);
// How much to keep. `typed`: the value of --keep; if it was not given, enough is kept, `otherwise` at least.
Result<Nanoseconds> kept_for(const TriggerRequest& request, const std::string& typed,
                             std::optional<Nanoseconds> otherwise);

}  // namespace phlox::cli
