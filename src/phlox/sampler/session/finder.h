// Finds the Pythons of a tree of processes while others are recorded. Implemented by ProgramFinder, in a
// thread of its own. Called by the recorder's thread; help() by any.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "phlox/base/clock.h"
#include "phlox/base/descriptor.h"
#include "phlox/sampler/session/program.h"

namespace phlox::sampler {

class Finder {
 public:
  struct Found {
    std::unique_ptr<Program> program;
    Descriptor pidfd;
    pid_t parent = 0;
  };
  // Forks of a Python that ended before they were returned, and the command line of the last.
  struct Brief {
    size_t processes = 0;
    std::string command_line;
    std::vector<pid_t> ids;  // the first of them
  };
  struct State {
    uint64_t checks = 0;  // whole ones
    bool any_left = true;
    std::string refused;  // why a Python could not be read; the last such
    Brief too_brief;
  };
  virtual ~Finder() = default;

  // Readable when something was found.
  virtual int descriptor() const = 0;
  virtual std::vector<Found> take() = 0;
  // How many more are wanted at the moment; 0: it rests.
  virtual void want(size_t processes) = 0;
  // Checks whether there is something to search for, in its thread's place, which then sleeps longer. Called
  // by any thread that is awake; waits for nothing.
  virtual void help(Nanoseconds now) = 0;
  // The program of this process has ended by execve.
  virtual void check_again(pid_t pid) = 0;
  // Whether check_again() is called for each execve of the tree, and forks are reported by others. Then few
  // processes are left to find, and searches are rare.
  virtual void births_are_reported(bool reported) = 0;
  virtual State state() = 0;
};

}  // namespace phlox::sampler
