// The lines of an input, one after the other, in little memory.
#pragma once

#include <cstdint>
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

  Input& input_;
  std::string buffer_;
  size_t at_ = 0;
  uint64_t offset_ = 0;
  uint64_t number_ = 0, cut_ = 0;
  bool ended_ = false;
};

}  // namespace phlox::importers
