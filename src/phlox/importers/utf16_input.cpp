#include "phlox/importers/utf16_input.h"

#include <algorithm>
#include <cstring>

namespace phlox::importers {
namespace {

constexpr size_t kUtf16Piece = size_t{64} << 10;
constexpr uint32_t kReplacement = 0xfffd;

}  // namespace

Utf16Input::Utf16Input(Input& text, bool big_endian)
    : text_(text),
      big_endian_(big_endian),
      taken_(2),
      utf8_([this](std::span<std::byte> into) { return convert(into); }) {}

std::unique_ptr<Utf16Input> Utf16Input::of(Input& text) {
  std::byte mark[2];
  if (text.read_at(0, mark) < sizeof mark) return nullptr;
  const bool little = mark[0] == std::byte{0xff} && mark[1] == std::byte{0xfe};
  const bool big = mark[0] == std::byte{0xfe} && mark[1] == std::byte{0xff};
  return little || big ? std::unique_ptr<Utf16Input>(new Utf16Input(text, big)) : nullptr;
}

void Utf16Input::put(uint32_t point) {
  const auto more = [&](unsigned shift) { ready_ += static_cast<char>(0x80U | (point >> shift & 0x3fU)); };
  if (point < 0x80) {
    ready_ += static_cast<char>(point);
  } else if (point < 0x800) {
    ready_ += static_cast<char>(0xc0U | point >> 6U);
    more(0);
  } else if (point < 0x10000) {
    ready_ += static_cast<char>(0xe0U | point >> 12U);
    more(6);
    more(0);
  } else {
    ready_ += static_cast<char>(0xf0U | point >> 18U);
    more(12);
    more(6);
    more(0);
  }
}

// Half a surrogate pair is no character.
void Utf16Input::take_unit(uint32_t unit) {
  const bool is_high = unit >= 0xd800 && unit < 0xdc00, is_low = unit >= 0xdc00 && unit < 0xe000;
  if (high_ != 0 && is_low) {
    put(0x10000U + ((high_ - 0xd800U) << 10U) + (unit - 0xdc00U));
    high_ = 0;
    return;
  }
  if (high_ != 0) put(kReplacement);
  high_ = is_high ? unit : 0;
  if (!is_high) put(is_low ? kReplacement : unit);
}

size_t Utf16Input::convert(std::span<std::byte> into) {
  while (given_ == ready_.size() && !ended_) {
    ready_.clear();
    given_ = 0;
    piece_.resize(text_.room_for(taken_, kUtf16Piece));
    piece_.resize(text_.read_at(taken_, piece_));
    taken_ += piece_.size();
    ended_ = piece_.size() < kUtf16Piece;
    for (size_t i = 0; i + 1 < piece_.size(); i += 2) {
      const auto first = std::to_integer<uint32_t>(piece_[i]),
                 second = std::to_integer<uint32_t>(piece_[i + 1]);
      take_unit(big_endian_ ? first << 8U | second : second << 8U | first);
    }
    if (ended_ && high_ != 0) put(kReplacement);
  }
  const size_t size = std::min(into.size(), ready_.size() - given_);
  std::memcpy(into.data(), ready_.data() + given_, size);
  given_ += size;
  return size;
}

size_t Utf16Input::read_at(uint64_t offset, std::span<std::byte> into) {
  return utf8_.read_at(offset, into);
}

}  // namespace phlox::importers
