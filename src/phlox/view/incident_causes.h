// Why a recording of an incident was written (`record --on`, docs/triggers.md): its causes, which are rows of
// `meta`. Pure.
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "phlox/profile/profile.h"

namespace phlox::view {

struct IncidentCause {
  Nanoseconds time = 0;  // when it began: CLOCK_MONOTONIC
  std::string kind;      // "stall", "cpu-wait": the kind of condition
  std::string words;     // "an event loop in thread ...: stall of 405 ms in read_config (app.py:28), asleep"
  std::string in_short;  // "stall of 405 ms"
};

// The key and the value. `number`: from 1, that of the cause that began the incident.
std::pair<std::string, std::string> meta_of(const IncidentCause& cause, size_t number);

// The one that began it first. `time` is since the start of the recording. Empty: not an incident's
// recording.
std::vector<IncidentCause> incident_causes(const profile::Profile& profile);

}  // namespace phlox::view
