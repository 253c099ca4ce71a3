// The error of a process that could not be read, in the user's words.
#pragma once

#include <sys/types.h>

#include <string>

#include "phlox/base/result.h"

namespace phlox::selection {

// `command`: "record", for the hint. Finds out which of the kernel's checks refused, and which Python was
// probably meant instead of the shell script that started it.
Error explain_attach_error(Error error, pid_t pid, const std::string& command);

}  // namespace phlox::selection
