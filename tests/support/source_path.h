// Paths of files in this tree that tests read or run.
#pragma once

#include <string>

namespace phlox::test {

// `inside`: relative to the root of the tree.
std::string source_path(const std::string& inside);

}  // namespace phlox::test
