// The tools of `phlox mcp`: what each offers, the command that it is, and the answer that is made of what the
// command wrote. Runs nothing.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "phlox/base/clock.h"
#include "phlox/base/result.h"
#include "phlox/cli/served_command.h"
#include "phlox/mcp/json.h"
#include "phlox/mcp/session.h"
#include "phlox/mcp/tool.h"

namespace phlox::cli {

// `locals`: dump may show local variables.
std::vector<mcp::Tool> served_tools(bool locals);

// For models, at the start of a session.
std::string served_instructions();

// A call of a tool, as a command.
struct ServedCall {
  std::string tool;
  std::vector<std::string> words;  // the command line, without the name of the program
  Nanoseconds longest = 0;         // after which it is ended
  Nanoseconds duration = 0;        // of a recording
  std::string recording;           // the file that it writes
  size_t most_bytes = 0;           // of the text, and of the result
};

// `arguments`: as the tool has them. `new_recording`: a path for a recording without one of its own.
// `folder`: the one that relative paths begin at. ErrorKind::usage, or ErrorKind::output: the file is there
// already.
struct ServedPlaces {
  std::string new_recording, folder;
};
Result<ServedCall> served_call(const mcp::Tool& tool, const mcp::Json& arguments, const ServedPlaces& places);

struct ServedEnd {
  Nanoseconds took = 0;
  bool was_asked = false;  // to end before its time
  bool is_late = false;    // because of ServedCall::longest
};
mcp::Answer served_answer(const ServedCall& call, CommandOutcome outcome, const ServedEnd& end);

// The kind of an error, by its exit status, as docs/mcp.md lists them.
std::string_view kind_words(int status);

// "phlox report 'my file.phlox'", as a shell takes it.
std::string command_words(const std::vector<std::string>& words);

}  // namespace phlox::cli
