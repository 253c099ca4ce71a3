// The pages of `phlox agent --listen`. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "phlox/base/clock.h"
#include "phlox/cli/agent_output.h"

namespace phlox::cli {

struct AgentNumbers {
  uint64_t samples = 0, rejected = 0, lost = 0;
  uint64_t intervals = 0;
  uint64_t processes = 0;  // recorded now
  uint64_t kept_rows = 0;  // Intervals::kept_rows()
  Nanoseconds taken = 0;   // CPU time of the programs
  Nanoseconds cpu = 0;     // of the agent
  uint64_t memory = 0;     // bytes of the agent
  std::vector<AgentOutput::TargetCounts> targets;
};

// In the text format of Prometheus, version 0.0.4.
std::string metrics_text(const AgentNumbers& numbers);

}  // namespace phlox::cli
