// Failing to start is rare and needs a message: an Error says what failed, why, with the numbers, and what to
// do next. (Failing to read a running target is normal and has a small value of its own:
// memory/remote_memory.h.)
#pragma once

#include <string>
#include <tl/expected.hpp>
#include <utility>

namespace phlox {

// Each kind has one documented exit status (docs/exit-status.md, cli/exit_status.h). No code matches message
// text.
enum class ErrorKind {
  usage,               // invalid command line
  no_such_process,     // no process with that id
  not_python,          // a process without a CPython in it
  unsupported_python,  // a Python that this build does not read
  permission,          // the kernel refuses access
  target_gone,         // the target ended before anything could be read
  target_state,        // zombie, already traced, 32-bit, ...
  output,              // the output cannot be written
  input,               // an input file is damaged, foreign or of another version
  launch,              // the program to start cannot be started
  system,              // anything else that the system refuses
};

struct Error {
  ErrorKind kind = ErrorKind::system;
  std::string message;  // lower case, no full stop: "cannot read memory of process 4711: ..."
  std::string hint;     // what to do next, as a sentence or a command; may be empty
};

template <class T>
using Result = tl::expected<T, Error>;

inline tl::unexpected<Error> fail(ErrorKind kind, std::string message, std::string hint = {}) {
  return tl::unexpected<Error>(Error{kind, std::move(message), std::move(hint)});
}
// Passes the error of one Result on as the error of another.
template <class T>
tl::unexpected<Error> fail(const Result<T>& other) {
  return tl::unexpected<Error>(other.error());
}

}  // namespace phlox
