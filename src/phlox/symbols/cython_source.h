// Maps lines of the C file that Cython wrote to lines of the .pyx file: a comment repeats each of these
// before its C code. From text; opens no file.
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
  // Text that Cython did not write gives no lines.
  explicit CythonSource(std::string_view c_source);

  // The line of the last such comment at or before a line.
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
