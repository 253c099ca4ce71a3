// From words to CommandLine, and the description of all of it. Prints nothing; a word that is off is an Error
// of kind usage.
#pragma once

#include <string>
#include <vector>

#include "phlox/base/result.h"
#include "phlox/cli/arguments.h"
#include "phlox/cli/description.h"

namespace phlox::cli {

// `words`: without the name of the program. What follows the first "--" is the program to start and is not
// looked at.
Result<CommandLine> parse_command_line(const std::vector<std::string>& words);

const Description& description();

}  // namespace phlox::cli
