// Whether a file of Python code belongs to the standard library or to an installed package, by its path.
#pragma once

#include <string_view>

namespace phlox::profile {

// Code without a file ("<frozen importlib._bootstrap>", "<string>") counts as one of a library.
inline bool is_library_file(std::string_view file) {
  const auto has = [&](std::string_view part) { return file.find(part) != std::string_view::npos; };
  return file.starts_with('<') || has("/site-packages/") || has("/dist-packages/") || has("/lib/python");
}

}  // namespace phlox::profile
