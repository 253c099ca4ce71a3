// Bytes that come in pieces, as messages: one a line, each of limited length.
#pragma once

#include <string>
#include <string_view>
#include <utility>

namespace phlox::mcp {

// A call of a tool takes a few hundred bytes; the longest value is a query.
inline constexpr size_t kLongestMessage = size_t{1} << 20;

class MessageLines {
 public:
  // `longest`: bytes of a line. A longer one is only reported as too long, at its end.
  explicit MessageLines(size_t longest = kLongestMessage) : longest_(longest) {}

  // Calls `line(text)` for each line that ends in these bytes and is not blank, and `too_long()` instead for
  // one that was too long.
  template <class Line, class TooLong>
  void put(std::string_view bytes, Line&& line, TooLong&& too_long) {
    while (!bytes.empty()) {
      const size_t end = bytes.find('\n');
      const std::string_view piece = bytes.substr(0, end);
      if (!skips_ && held_.size() + piece.size() > longest_) {
        skips_ = true;
        std::string().swap(held_);
      }
      if (!skips_) held_ += piece;
      if (end == std::string_view::npos) return;
      bytes.remove_prefix(end + 1);
      give(line, too_long);
    }
  }
  // The last line needs no end.
  template <class Line, class TooLong>
  void end(Line&& line, TooLong&& too_long) {
    give(line, too_long);
  }

 private:
  template <class Line, class TooLong>
  void give(Line&& line, TooLong&& too_long) {
    const std::string text = std::exchange(held_, {});
    if (std::exchange(skips_, false)) {
      too_long();
    } else if (text.find_first_not_of(" \t\r") != std::string::npos) {
      line(std::string_view(text));
    }
  }

  size_t longest_;
  std::string held_;
  bool skips_ = false;
};

}  // namespace phlox::mcp
