// The texts of the recorder's warnings: things that it could not do as it does by default, and processes
// without samples. Only texts; the events are counted elsewhere.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <string>
#include <vector>

#include "phlox/sampler/session/recorder.h"

namespace phlox::sampler {

// Things that could not be done as by default, and what was done instead.
std::vector<std::string> refusals(const Options& options, const Progress& progress);
// `chosen`: the Pythons were chosen on the host, not started by recorded processes.
std::string not_every_python(bool chosen, const std::string& why);
// `refused`: the refused call that watches the ends of processes, and why.
std::string ends_refused(const std::string& refused);
// A root whose program ended by execve.
std::string became_another(pid_t pid, const std::string& executable);
// `command_line`: of the last of them.
std::string pythons_too_brief(size_t pythons, const std::string& command_line);
// Forked, and running no program of their own. `command_line` may be empty: not known.
std::string forks_too_brief(size_t processes, const std::string& command_line);

}  // namespace phlox::sampler
