// The interpreters of this machine, for tests that run on each of them.
#pragma once

#include <ostream>
#include <string>
#include <vector>

namespace phlox::test {

struct Python {
  std::string path;
  std::string label;  // "3_12_1", "standalone_3_14_6": valid in a test name
  int major = 0, minor = 0;
  friend std::ostream& operator<<(std::ostream& out, const Python& python) { return out << python.path; }
};

// From PHLOX_PYTHONS if set (the list of tools/get-pythons.sh, or paths separated by ':'), otherwise pyenv's
// versions and /usr/bin/python3. Each real file once, without those that do not start. Sorted.
const std::vector<Python>& pythons();

// Runs it with `arguments` and returns its standard output; on failure adds a gtest failure and returns "".
std::string run_python(const Python& python, const std::vector<std::string>& arguments);

}  // namespace phlox::test
