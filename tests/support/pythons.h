// The interpreters of this machine, for tests that run on each of them.
#pragma once

#include <ostream>
#include <string>
#include <vector>

namespace phlox::test {

struct Python {
  std::string path;
  std::string label;  // "3_12_1", "standalone_3_14_6": good for the name of a test
  int major = 0, minor = 0;
  friend std::ostream& operator<<(std::ostream& out, const Python& python) { return out << python.path; }
};

// PHLOX_PYTHONS where it is set (the list that tools/get-pythons.sh writes, or paths with ':' between), else
// pyenv's versions and /usr/bin/python3: each real file once, what does not start left out. Sorted.
const std::vector<Python>& pythons();

// Runs it with `arguments`, gives its standard output; on failure an empty string (gtest failure added).
std::string run_python(const Python& python, const std::vector<std::string>& arguments);

}  // namespace phlox::test
