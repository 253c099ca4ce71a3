#include "phlox/profile/trace_ids.h"

namespace phlox::profile {
namespace {

constexpr std::string_view kHexDigits = "0123456789abcdef";

}  // namespace

std::string id_text(std::span<const uint8_t> id) {
  std::string text;
  text.reserve(2 * id.size());
  for (const uint8_t byte : id) {
    text += kHexDigits[byte >> 4];
    text += kHexDigits[byte & 15];
  }
  return text;
}

template <size_t Size>
std::optional<std::array<uint8_t, Size>> parse_id(std::string_view text) {
  if (text.size() != 2 * Size) return {};
  std::array<uint8_t, Size> id{};
  for (size_t i = 0; i < Size; ++i) {
    const size_t high = kHexDigits.find(text[2 * i]), low = kHexDigits.find(text[2 * i + 1]);
    if (high == std::string_view::npos || low == std::string_view::npos) return {};
    id[i] = static_cast<uint8_t>(high << 4 | low);
  }
  return id;
}

template std::optional<std::array<uint8_t, 16>> parse_id<16>(std::string_view text);
template std::optional<std::array<uint8_t, 8>> parse_id<8>(std::string_view text);

}  // namespace phlox::profile
