// The lines of an input, one after the other, in little memory. A line ends with "\n", "\r\n" or "\r".
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "phlox/importers/input.h"

namespace phlox::importers {

class TextLines {
 public:
  // A stack of thousands of frames is some 100 KB.
  static constexpr size_t kLongest = size_t{4} << 20;

  explicit TextLines(Input& input) : input_(input) {}
  // Without its end; valid until the next call. False: there is none. A line longer than kLongest is
  // truncated, and counted.
  bool next(std::string_view& line);
  uint64_t number() const { return number_; }
  uint64_t cut() const { return cut_; }

 private:
  bool fill();
  size_t end_from(size_t from);
  void pass_rest_of_line();

  Input& input_;
  std::string buffer_;
  size_t at_ = 0;
  std::optional<size_t> newline_;  // the next "\n" of the buffer, if it was searched
  uint64_t offset_ = 0;
  uint64_t number_ = 0, cut_ = 0;
  bool ended_ = false, after_return_ = false;
};

// Takes the first line off a text that is in memory: the start of a file, to recognise its format.
std::string_view take_text_line(std::string_view& text);

}  // namespace phlox::importers
