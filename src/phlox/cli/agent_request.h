// The request of `phlox agent`: its words and what the environment says, checked before anything starts.
// Starts and writes nothing.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "phlox/base/result.h"
#include "phlox/cli/arguments.h"
#include "phlox/cli/trigger_request.h"
#include "phlox/push/target.h"
#include "phlox/sampler/session/recorder.h"
#include "phlox/selection/selection.h"
#include "phlox/symbols/debug_files.h"

namespace phlox::cli {

struct AgentRequest {
  std::shared_ptr<selection::Selection> selection;
  sampler::Options recorder;
  std::vector<push::Target> targets;
  bool tasks = true;  // also what tasks of event loops await
  Nanoseconds interval = 15 * kSecond;
  uint64_t buffer = uint64_t{256} << 20;  // bytes, of all targets together
  std::string state;                      // the folder for what was not sent yet
  std::string recording;                  // also keeps one there; empty: none
  Nanoseconds keep = 3600 * kSecond;      // of that
  std::string listen;                     // empty: no port
  std::string certificates;
  symbols::DebugSearch debug_search;  // for native names
  std::vector<std::string> warnings;
  TriggerRequest triggers;
};

Result<AgentRequest> agent_request_of(const CommandLine& line);

}  // namespace phlox::cli
