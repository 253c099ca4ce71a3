// Failures that no other code handles: the system refuses more memory or another thread, or a file may not
// grow.
#pragma once

namespace phlox::cli {

// Call it once, before anything else. An uncaught exception in any thread becomes a message on standard error
// and the exit status of ErrorKind::system, not an abort. A write beyond RLIMIT_FSIZE fails with EFBIG
// instead of killing phlox; a program that phlox starts is killed as before.
void install_last_resort();

// For the exception that is being handled, and valid as long as it is.
struct FailureWords {
  const char* message;
  const char* hint;  // may be empty
};
FailureWords words_of_current_exception() noexcept;

}  // namespace phlox::cli
