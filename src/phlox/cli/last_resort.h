// What is done about failures that no code expects: memory that the system refuses, a thread that it does not
// start, a file that may not grow.
#pragma once

#include "phlox/base/result.h"

namespace phlox::cli {

// Call it once, first of all. An exception that nobody catches, in whichever thread, is a message on standard
// error and the exit status of ErrorKind::system, never an abort; what a recording holds already stays
// readable. A write beyond the limit of file sizes (RLIMIT_FSIZE) fails with EFBIG instead of killing phlox.
// Programs that phlox starts have the dispositions that it was started with.
void install_last_resort();

// The exception that is being handled, as an error.
Error error_of_current_exception();

}  // namespace phlox::cli
