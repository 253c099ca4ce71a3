// UTF-8 of any origin: its characters, the columns in which they are drawn, and those that must not be drawn
// as they are. Own tables, because those of a library depend on its version: the same recording would give
// different pictures on different hosts.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace phlox {

struct Character {
  char32_t code = 0xfffd;
  size_t bytes = 1;
  bool valid = false;
};
// Well-formed as in Unicode 15, 3.9 D92; a byte that begins no character is U+FFFD. `text` is not empty.
Character first_character(std::string_view text);

// Bytes that are not UTF-8 become U+FFFD, one for each: text that every JSON parser takes.
std::string valid_utf8(std::string_view text);

// C0, DEL, C1.
bool is_control(char32_t code);
// Changes the direction of text, or is invisible and joins or breaks lines: a name that contains it could be
// mistaken for another.
bool is_deceiving(char32_t code);

// Columns of a terminal or a monospaced font: 2 for East Asian wide characters and emoji, 0 for combining
// marks.
size_t columns_of(char32_t code);
size_t columns_of(std::string_view text);
// The longest beginning, and the longest end, of at most so many columns.
std::string_view first_columns(std::string_view text, size_t columns);
std::string_view last_columns(std::string_view text, size_t columns);

}  // namespace phlox
