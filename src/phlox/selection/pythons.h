// The Pythons among processes, for `phlox list`, for hints, and for the Pythons that run at the same time as
// a target.
#pragma once

#include <sys/types.h>

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "phlox/base/clock.h"
#include "phlox/python/recognise.h"

namespace phlox::selection {

struct PythonProcess {
  pid_t pid = 0, parent = 0;
  uint64_t start_ticks = 0;  // identifies the process, together with the pid
  std::string user;
  std::string version;  // "3.12.3", "3.13.1t"; "PyPy": not read; empty: not known without more rights
  std::string command;
  Nanoseconds cpu_time = 0;
};

struct Pythons {
  std::vector<PythonProcess> found;
  size_t hidden = 0;  // processes that we may not read
};
// Which of these are Pythons, as a recording would find them. Processes that end meanwhile are left out.
Pythons find_pythons(std::span<const pid_t> processes, python::Recogniser& recogniser);

}  // namespace phlox::selection
