// The bytes of a profile.proto, within limits.
#pragma once

#include <string>

#include "phlox/base/result.h"
#include "phlox/importers/input.h"

namespace phlox::importers {

// All of `input`, which is not packed. ErrorKind::input as soon as a field is longer than 16 MiB, before any
// of it is in memory, or if there is more than 1 GiB.
Result<std::string> read_pprof(Input& input);

}  // namespace phlox::importers
