// Which processes of this host, in addition to those with --pid, as a command line says it.
#pragma once

#include <string>

namespace phlox::selection {

struct Chosen {
  std::string name, user, cgroup;  // the values of --name, --user and --cgroup
  bool all = false;
};

}  // namespace phlox::selection
