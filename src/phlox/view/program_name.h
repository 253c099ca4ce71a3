// The common name of similar processes: the workers of one pool, the children of one server. Pure.
#pragma once

#include <string>

#include "phlox/profile/model.h"

namespace phlox::view {

// The command line without the parts that only distinguish siblings: the process's own id, and the numbers
// that multiprocessing, concurrent.futures and joblib give to each worker ("pipe_handle=7", "LokyProcess-3").
// A star replaces each. Without a command line, the executable.
std::string program_name(const profile::Process& process);

}  // namespace phlox::view
