// The request of `phlox record`: its words, checked before anything starts. Reads the named processes; starts
// and writes nothing.
#pragma once

#include <sys/types.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "phlox/base/result.h"
#include "phlox/cli/arguments.h"
#include "phlox/cli/destination.h"
#include "phlox/cli/trigger_request.h"
#include "phlox/sampler/session/recorder.h"
#include "phlox/selection/selection.h"
#include "phlox/view/loop_stalls.h"

namespace phlox::cli {

struct RecordRequest {
  std::vector<pid_t> pids;
  std::shared_ptr<selection::Selection> selection;  // null: only the named processes
  std::vector<std::string> program;
  sampler::Options options;
  Destination::Options destination;
  Nanoseconds shortest_stall = view::kStall;
  bool tasks = true;  // record what tasks await
  TriggerRequest triggers;
  std::optional<int> ready_fd;  // an open descriptor, to be closed
};

Result<RecordRequest> record_request_of(const CommandLine& line);

}  // namespace phlox::cli
