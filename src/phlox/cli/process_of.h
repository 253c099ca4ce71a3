// The process that -p names: as this host counts, or as a container does (--in). Prints nothing.
#pragma once

#include <sys/types.h>

#include <string>

#include "phlox/base/result.h"
#include "phlox/cli/arguments.h"

namespace phlox::cli {

// `container`: empty, or the value of --in.
Result<pid_t> process_of(const CommandLine& line, const std::string& pid, const std::string& container);
// --in without -p names no process.
Result<void> check_container(bool has_pid, const std::string& container);

}  // namespace phlox::cli
