// Text on its way to a terminal: whatever names are in it, they do not steer the terminal.
#pragma once

#include <string>
#include <string_view>

namespace phlox::report {

// As plain() has it (table.h), with line ends and tabs as they are.
std::string plain_lines(std::string_view text);

// The same of a text that comes in pieces: a character may be divided between two.
class PlainStream {
 public:
  std::string put(std::string_view piece);
  // What was held back, of which the rest has not come.
  std::string end();

 private:
  std::string held_;
};

}  // namespace phlox::report
