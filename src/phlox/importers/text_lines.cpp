#include "phlox/importers/text_lines.h"

#include <algorithm>

namespace phlox::importers {
namespace {

constexpr size_t kPiece = size_t{256} << 10;

}  // namespace

bool TextLines::fill() {
  if (ended_) return false;
  buffer_.erase(0, at_);
  at_ = 0;
  newline_.reset();
  const size_t have = buffer_.size();
  buffer_.resize(have + input_.room_for(offset_, kPiece));
  const size_t got = input_.read_at(offset_, std::as_writable_bytes(std::span(buffer_)).subspan(have));
  buffer_.resize(have + got);
  offset_ += got;
  ended_ = got < kPiece;
  return got > 0;
}

// Where the line ends that the buffer holds from `from` on; npos: not in the buffer.
size_t TextLines::end_from(size_t from) {
  if (!newline_ || *newline_ < from) newline_ = buffer_.find('\n', from);
  const size_t end = std::min(*newline_, buffer_.size());
  const size_t carriage_return = std::string_view(buffer_).substr(0, end).find('\r', from);
  return carriage_return == std::string_view::npos ? *newline_ : carriage_return;
}

void TextLines::pass_rest_of_line() {
  at_ = buffer_.size();
  while (fill()) {
    const size_t end = end_from(0);
    at_ = end == std::string::npos ? buffer_.size() : end + 1;
    if (end == std::string::npos) continue;
    after_return_ = buffer_[end] == '\r';
    return;
  }
}

bool TextLines::next(std::string_view& line) {
  if (number_ == 0 && fill() && buffer_.starts_with(kByteOrderMark)) at_ = kByteOrderMark.size();
  if (after_return_ && (at_ < buffer_.size() || fill()) && buffer_[at_] == '\n') ++at_;
  after_return_ = false;
  size_t end = end_from(at_);
  while (end == std::string::npos && buffer_.size() - at_ <= kLongest) {
    const size_t searched = buffer_.size() - at_;
    if (!fill()) break;
    end = end_from(searched);
  }
  if (end == std::string::npos && at_ == buffer_.size()) return false;
  ++number_;
  line = std::string_view(buffer_).substr(at_, end == std::string::npos ? end : end - at_);
  if (end != std::string::npos) {
    after_return_ = buffer_[end] == '\r';
    at_ = end + 1;
  } else if (ended_) {
    at_ = buffer_.size();
  } else {
    ++cut_;
    pass_rest_of_line();
    line = {};
  }
  return true;
}

std::string_view take_text_line(std::string_view& text) {
  const size_t end = text.find_first_of("\r\n");
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  if (end != std::string_view::npos && text.starts_with('\n') && line.data()[end] == '\r')
    text.remove_prefix(1);
  return line;
}

}  // namespace phlox::importers
