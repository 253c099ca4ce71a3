#include "phlox/selection/attach_error.h"

#include <fmt/format.h>

#include "phlox/process/permission.h"
#include "phlox/process/process_state.h"
#include "phlox/process/process_tree.h"
#include "phlox/selection/pythons.h"

namespace phlox::selection {

Error explain_attach_error(Error error, pid_t pid, const std::string& command) {
  if (error.kind == ErrorKind::not_python) {
    python::Recogniser recogniser;
    const auto started = find_pythons(process::read_descendants(pid), recogniser).found;
    if (!started.empty()) {
      error.hint = fmt::format("it started a Python, process {} ({}): phlox {} -p {}", started[0].pid,
                               started[0].command, command, started[0].pid);
    }
  }
  if (error.kind != ErrorKind::permission) return error;
  const auto state = process::read_process_state(pid);
  return state ? process::permission_error(process::read_permission_facts(*state),
                                           fmt::format("{} -p {}", command, pid))
               : error;
}

}  // namespace phlox::selection
