#include "phlox/importers/byte_stream.h"

#include <algorithm>
#include <utility>

namespace phlox::importers {
ByteStream::ByteStream(Input& input, uint64_t offset, uint64_t end)
    : ByteStream([&input, at = offset, end](std::span<std::byte> into) mutable {
        const size_t got =
            input.read_at(at, into.first(std::min<uint64_t>(into.size(), end > at ? end - at : 0)));
        at += got;
        return got;
      }) {
  piece_ = most_ = std::min(kPiece, input.room_for(offset, end > offset ? end - offset : 0));
}

bool ByteStream::fill() {
  if (ended_) return false;
  buffer_.resize(piece_);
  piece_ = std::max(piece_, std::min(piece_ * 4, most_));
  at_ = 0;
  end_ = source_(buffer_);
  ended_ = end_ == 0;
  return !ended_;
}

bool ByteStream::at_end() {
  return at_ == end_ && !fill();
}

uint8_t ByteStream::byte() {
  if (at_end()) {
    failed_ = true;
    return 0;
  }
  return std::to_integer<uint8_t>(buffer_[at_++]);
}

uint32_t ByteStream::u32() {
  uint32_t value = 0;
  for (unsigned shift = 0; shift < 32; shift += 8) value |= uint32_t{byte()} << shift;
  return value;
}

uint64_t ByteStream::u64() {
  const uint64_t low = u32();
  return low | uint64_t{u32()} << 32;
}

uint64_t ByteStream::uleb128() {
  uint64_t value = 0;
  for (unsigned shift = 0; shift < 70; shift += 7) {
    const uint8_t next = byte();
    if (failed_) return 0;
    if (shift < 64) value |= uint64_t{next & 0x7fU} << shift;
    if ((next & 0x80U) == 0) return value;
  }
  failed_ = true;
  return 0;
}

std::string ByteStream::c_string(size_t most) {
  std::string text;
  for (uint8_t next = byte(); next != 0; next = byte()) {
    if (text.size() < most) text += static_cast<char>(next);
  }
  return text;
}

}  // namespace phlox::importers
