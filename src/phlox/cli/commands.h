// What each command does, from its arguments to its exit status. Data goes to standard output or a file, talk
// to `talk`.
#pragma once

#include "phlox/cli/arguments.h"
#include "phlox/cli/talk.h"

namespace phlox::cli {

int record(const CommandLine& line, Talk& talk);
int export_recording(const CommandLine& line, Talk& talk);

}  // namespace phlox::cli
