// What Pyroscope's push API takes: a PushRequest of grafana/pyroscope, api/push/v1/push.proto, with one
// series for each process and in it a pprof of all kinds of time and of further events. Has totals, no order
// in time.
#pragma once

#include <functional>
#include <string>

#include "phlox/base/result.h"
#include "phlox/view/view.h"

namespace phlox::exporters {

struct PyroscopeFacts {
  // A new id for each series' profile: a UUID.
  std::function<std::string()> profile_id;
  double rate_hz = 0;  // 0: not known
};

// Empty: nothing passes the choices. `choices.states` and `choices.weight` are not used.
Result<std::string> pyroscope_message(const profile::Profile& profile, const view::Choices& choices,
                                      const PyroscopeFacts& facts);

}  // namespace phlox::exporters
