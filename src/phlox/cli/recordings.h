// Recordings as commands take them: ours, or a file of another tool, recognised by its content and imported
// on the way.
#pragma once

#include <string>

#include "phlox/base/result.h"
#include "phlox/cli/arguments.h"
#include "phlox/cli/talk.h"
#include "phlox/profile/profile.h"

namespace phlox::cli {

// "-": standard input, for files of other tools. Shows the samples of the event that the arguments name.
Result<profile::Profile> read_recording(const std::string& path, const InputArguments& arguments, Talk& talk);

// Rows of another tool's recording, with native frames named. ErrorKind::input if no format is recognised.
Result<void> import_recording(const std::string& path, const InputArguments& arguments, profile::Sink& sink,
                              Talk& talk);

}  // namespace phlox::cli
