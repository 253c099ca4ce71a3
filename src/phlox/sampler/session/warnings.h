// The recorder's warnings, in words: what it could not do as it does it by default, whom it did not see.
// Words only; what happened is counted elsewhere.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <string>
#include <vector>

#include "phlox/sampler/session/recorder.h"

namespace phlox::sampler {

// What could not be done as it is done by default, and what was done instead.
std::vector<std::string> refusals(const Options& options, const Progress& progress);
// `chosen`: the Pythons were chosen on the host, not started by what is recorded.
std::string not_every_python(bool chosen, const std::string& why);
// `refused`: a call and why, by which the ends of processes are watched.
std::string ends_refused(const std::string& refused);
// A root whose program ended by execve.
std::string became_another(pid_t pid, const std::string& executable);
// `command_line`: of the last of them.
std::string pythons_too_brief(size_t pythons, const std::string& command_line);
// Forked, and in no program of their own. `command_line` may be empty: not known.
std::string forks_too_brief(size_t processes, const std::string& command_line);

}  // namespace phlox::sampler
