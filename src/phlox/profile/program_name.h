// What a process is called together with others like it: the workers of one pool, the children of one server.
// Pure.
#pragma once

#include <string>

#include "phlox/profile/model.h"

namespace phlox::profile {

// Its command line, without what only tells it from its brothers: its own id, and the numbers that
// multiprocessing, concurrent.futures and joblib give to each worker ("pipe_handle=7", "LokyProcess-3"), a
// star in place of each. Without a command line its executable.
std::string program_name(const Process& process);

}  // namespace phlox::profile
