// OpenTelemetry's profiles signal, opentelemetry/proto/profiles/v1development/profiles.proto of
// opentelemetry-proto 1.11.0: still marked Alpha, so this file is the one to change when it changes. A
// message is a ProfilesData, which is also the body of an OTLP/HTTP request. Has totals, no order in time.
// docs/formats.md is the reference.
#pragma once

#include <functional>
#include <ostream>
#include <string>

#include "phlox/base/result.h"
#include "phlox/view/view.h"

namespace phlox::exporters {

struct OtlpFacts {
  // A new id of 16 bytes for each profile, so that a receiver can tell a repeated one. None: none is written.
  std::function<std::string()> profile_id;
  // A native function without a name has no line then: the receiver may know it by build-id and address.
  bool leaves_addresses = false;
};

// One resource for each process, in it one profile for each kind of time (cpu, wall, off_cpu, gil_wait,
// cpu_wait) and for each further event. Sums are exact. Empty: nothing passes the choices.
Result<std::string> otlp_message(const profile::Profile& profile, const view::Choices& choices,
                                 const OtlpFacts& facts);

}  // namespace phlox::exporters
