// The bytes of a profile.proto, as long as they may be.
#pragma once

#include <string>

#include "phlox/base/result.h"
#include "phlox/importers/input.h"

namespace phlox::importers {

// All of `input`, which is not packed. ErrorKind::input as soon as a field is longer than 16 MiB, of which
// nothing is in memory then, or when there is more than 1 GiB.
Result<std::string> read_pprof(Input& input);

}  // namespace phlox::importers
