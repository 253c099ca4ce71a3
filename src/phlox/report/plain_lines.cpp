#include "phlox/report/plain_lines.h"

#include <algorithm>

#include "phlox/report/table.h"

namespace phlox::report {
namespace {

// How many bytes at the end may begin an incomplete character.
size_t unfinished(std::string_view text) {
  for (size_t back = 1; back <= std::min<size_t>(3, text.size()); ++back) {
    const auto byte = static_cast<unsigned char>(text[text.size() - back]);
    if ((byte & 0xc0) == 0x80) continue;
    const size_t length = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : byte >= 0xc0 ? 2 : 1;
    return length > back ? back : 0;
  }
  return 0;
}

}  // namespace

std::string plain_lines(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const size_t end = std::min(text.find_first_of("\n\t"), text.size());
    out += plain(text.substr(0, end));
    if (end < text.size()) out += text[end];
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}

std::string PlainStream::put(std::string_view piece) {
  held_ += piece;
  const size_t kept = unfinished(held_);
  const std::string out = plain_lines(std::string_view(held_).substr(0, held_.size() - kept));
  held_.erase(0, held_.size() - kept);
  return out;
}

std::string PlainStream::end() {
  const std::string out = plain_lines(held_);
  held_.clear();
  return out;
}

}  // namespace phlox::report
