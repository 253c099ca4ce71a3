// The error of a process that could not be read, in the user's words.
#pragma once

#include <fmt/format.h>

#include <string>

#include "phlox/base/result.h"
#include "phlox/target/permission.h"
#include "phlox/target/process_state.h"

namespace phlox::cli {

// `retry`: "record -p 4711", for the hint. Which of the kernel's checks refused is found out here.
inline Error explain_attach_error(Error error, pid_t pid, const std::string& retry) {
  if (error.kind != ErrorKind::permission) return error;
  const auto state = target::read_process_state(pid);
  return state ? target::permission_error(target::read_permission_facts(*state), retry) : error;
}

}  // namespace phlox::cli
