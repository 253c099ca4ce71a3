// The work of each command, from its arguments to its exit status. Data goes to standard output or a file,
// messages to `talk`.
#pragma once

#include <string>
#include <vector>

#include "phlox/base/result.h"
#include "phlox/cli/arguments.h"
#include "phlox/cli/talk.h"

namespace phlox::cli {

// The exit status of a command that ended so. Reports the error if there is one.
int status_of(const Result<void>& done, Talk& talk);

int record(const CommandLine& line, Talk& talk);
int export_recording(const CommandLine& line, Talk& talk);
int list(const CommandLine& line, Talk& talk);
int import_recording(const CommandLine& line, Talk& talk);
int view(const CommandLine& line, Talk& talk);
int dump(const CommandLine& line, Talk& talk);
int top(const CommandLine& line, Talk& talk);
int snapshot(const CommandLine& line, Talk& talk);
int label(const CommandLine& line, Talk& talk);
int doctor(const CommandLine& line, Talk& talk);
int report(const CommandLine& line, Talk& talk);
int diff(const CommandLine& line, Talk& talk);
int query(const CommandLine& line, Talk& talk);
int mcp(const CommandLine& line, Talk& talk);
int agent(const CommandLine& line, Talk& talk);
// `words` as Pyflame would get them, with the name of the program first. Any error is status 1, as Pyflame's
// was.
int pyflame(const std::vector<std::string>& words, Talk& talk);

}  // namespace phlox::cli
