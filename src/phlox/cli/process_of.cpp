#include "phlox/cli/process_of.h"

#include "phlox/cli/values.h"
#include "phlox/process/container.h"

namespace phlox::cli {

Result<pid_t> process_of(const CommandLine& line, const std::string& pid, const std::string& container) {
  auto number = named(line, "--pid", parse_pid(pid));
  if (!number || container.empty()) return number;
  return named(line, "--in", process::find_within(container, *number));
}

Result<void> check_container(bool has_pid, const std::string& container) {
  if (has_pid || container.empty()) return {};
  return fail(ErrorKind::usage, "--in needs -p: it says in which container the PID counts",
              "the first process of a container is: --in CONTAINER -p 1");
}

}  // namespace phlox::cli
