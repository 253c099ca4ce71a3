#include "phlox/importers/text_lines.h"

namespace phlox::importers {
namespace {

constexpr size_t kPiece = size_t{256} << 10;

}  // namespace

bool TextLines::fill() {
  if (ended_) return false;
  buffer_.erase(0, at_);
  at_ = 0;
  const size_t have = buffer_.size();
  buffer_.resize(have + input_.room_for(offset_, kPiece));
  const size_t got = input_.read_at(offset_, std::as_writable_bytes(std::span(buffer_)).subspan(have));
  buffer_.resize(have + got);
  offset_ += got;
  ended_ = got < kPiece;
  return got > 0;
}

bool TextLines::next(std::string_view& line) {
  if (number_ == 0 && fill() && buffer_.starts_with(kByteOrderMark)) at_ = kByteOrderMark.size();
  size_t searched = at_;
  size_t end = buffer_.find('\n', searched);
  while (end == std::string::npos && buffer_.size() - at_ <= kLongest) {
    searched = buffer_.size() - at_;
    if (!fill()) break;
    end = buffer_.find('\n', searched);
  }
  if (end == std::string::npos && at_ == buffer_.size()) return false;
  ++number_;
  line = std::string_view(buffer_).substr(at_, end == std::string::npos ? end : end - at_);
  at_ = end == std::string::npos ? buffer_.size() : end + 1;
  if (end == std::string::npos && !ended_) {
    // The rest of it, up to its end.
    ++cut_;
    std::string rest;
    while (fill()) {
      end = buffer_.find('\n');
      at_ = end == std::string::npos ? buffer_.size() : end + 1;
      if (end != std::string::npos) break;
    }
    line = {};
  }
  if (line.ends_with('\r')) line.remove_suffix(1);
  return true;
}

}  // namespace phlox::importers
