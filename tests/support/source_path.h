// Where files of this tree lie that tests read or run.
#pragma once

#include <string>

namespace phlox::test {

// `inside`: as seen from the root of the tree.
std::string source_path(const std::string& inside);

}  // namespace phlox::test
