// The interpreters of this machine, for tests that run on each of them.
#pragma once

#include <ostream>
#include <string>
#include <vector>

namespace phlox::test {

struct Python {
  std::string path;
  std::string label;  // "3_12_1", "2_7_18": good for the name of a test
  int major = 0, minor = 0;
  friend std::ostream& operator<<(std::ostream& out, const Python& python) { return out << python.path; }
};

// PHLOX_PYTHONS (paths, ':' between) where it is set, else pyenv's versions and /usr/bin/python3. Sorted,
// each real file once. What does not start is left out.
const std::vector<Python>& pythons();

// Runs it with `arguments`, gives its standard output; on failure an empty string (gtest failure added).
std::string run_python(const Python& python, const std::vector<std::string>& arguments);

}  // namespace phlox::test
