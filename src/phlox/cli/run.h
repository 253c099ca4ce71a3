// The whole program: words in, exit status out. main() does nothing else.
#pragma once

#include <string>
#include <vector>

namespace phlox::cli {

// `words`: argv.
int run(const std::vector<std::string>& words);

}  // namespace phlox::cli
