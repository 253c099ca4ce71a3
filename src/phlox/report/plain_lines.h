// Text for a terminal: names in it cannot control the terminal.
#pragma once

#include <string>
#include <string_view>

namespace phlox::report {

// As plain() does (table.h), but line ends and tabs stay.
std::string plain_lines(std::string_view text);

// The same for a text in pieces: a character may be split between two of them.
class PlainStream {
 public:
  std::string put(std::string_view piece);
  // The beginning of a character whose rest is missing.
  std::string end();

 private:
  std::string held_;
};

}  // namespace phlox::report
