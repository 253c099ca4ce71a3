// The lines of a .pyx file by those of the C file that Cython made of it: a comment repeats each before the C
// of it. From text; opens no file.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace phlox::symbols {

struct SourceLine {
  std::string file;  // empty: none
  int32_t line = 0;
};

class CythonSource {
 public:
  CythonSource() = default;
  // Text that Cython did not write gives none.
  explicit CythonSource(std::string_view c_source);

  // Of the last such comment at or before a line.
  SourceLine find(int32_t c_line) const;
  bool empty() const { return lines_.empty(); }

 private:
  struct LineMapping {
    int32_t c_line = 0;
    uint32_t file = 0;  // into files_
    int32_t line = 0;
  };
  std::vector<LineMapping> lines_;  // sorted
  std::vector<std::string> files_;
};

}  // namespace phlox::symbols
