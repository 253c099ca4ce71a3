// Divides what is appended to a log file into lines. Pure.
#pragma once

#include <string>
#include <string_view>

namespace phlox::incidents {

class LogLines {
 public:
  // The rest of a longer line is ignored.
  static constexpr size_t kLongestLine = size_t{64} << 10;

  // Calls `line` with each line that is complete, without its end.
  template <class OneLine>
  void put(std::string_view bytes, OneLine&& line) {
    while (!bytes.empty()) {
      const size_t end = bytes.find('\n');
      const std::string_view part = bytes.substr(0, end);
      begun_ += part.substr(0, kLongestLine - begun_.size());
      if (end == bytes.npos) return;
      if (begun_.ends_with('\r')) begun_.pop_back();
      line(std::string_view(begun_));
      begun_.clear();
      bytes.remove_prefix(end + 1);
    }
  }
  // The file was replaced or cut.
  void restart() { begun_.clear(); }

 private:
  std::string begun_;
};

}  // namespace phlox::incidents
