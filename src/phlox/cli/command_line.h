// Turns words into a CommandLine, and has the description of all of it. Prints nothing; an invalid word is an
// Error of kind usage.
#pragma once

#include <string>
#include <vector>

#include "phlox/base/result.h"
#include "phlox/cli/arguments.h"
#include "phlox/cli/description.h"

namespace phlox::cli {

// `words`: without the name of the program. The words after the first "--" are the program to start and are
// not parsed.
Result<CommandLine> parse_command_line(const std::vector<std::string>& words);

const Description& description();

}  // namespace phlox::cli
