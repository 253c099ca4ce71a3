#include "phlox/python/unicode.h"

#include <algorithm>
#include <cstring>
#include <string_view>

#include "phlox/base/load.h"
#include "phlox/base/utf8.h"

namespace phlox::python {
namespace {

// Include/cpython/unicodeobject.h: bits of `state` from kind on: kind (3 bits), compact, ascii.
struct State {
  unsigned kind;
  bool compact, ascii;
};
State state_of(const Layout& layout, uint32_t word) {
  word >>= layout.traits.unicode_kind_shift;
  return {word & 7U, (word & 8U) != 0, (word & 16U) != 0};
}

void append_character(std::string& text, uint32_t c) {
  auto put = [&text](uint32_t byte) { text.push_back(static_cast<char>(byte)); };
  constexpr char kHex[] = "0123456789abcdef";
  if (c == 0) {
    text += "\\x00";
  } else if (c < 0x80) {
    put(c);
  } else if (c < 0x800) {
    put(0xc0 | (c >> 6));
    put(0x80 | (c & 63));
  } else if (c >= 0xd800 && c < 0xe000) {
    text += "\\u";
    for (int shift = 12; shift >= 0; shift -= 4) text.push_back(kHex[(c >> shift) & 15]);
  } else if (c < 0x10000) {
    put(0xe0 | (c >> 12));
    put(0x80 | ((c >> 6) & 63));
    put(0x80 | (c & 63));
  } else if (c < 0x110000) {
    put(0xf0 | (c >> 18));
    put(0x80 | ((c >> 12) & 63));
    put(0x80 | ((c >> 6) & 63));
    put(0x80 | (c & 63));
  } else {
    text += "\xef\xbf\xbd";
  }
}

// Length of the valid UTF-8 character (no NUL) at the start of `bytes`; 0: none.
size_t utf8_length(std::span<const std::byte> bytes) {
  const auto character = first_character({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  return character.valid && character.code != 0 ? character.bytes : 0;
}

void append_bytes(std::string& text, std::span<const std::byte> content) {
  constexpr char kHex[] = "0123456789abcdef";
  while (!content.empty()) {
    const size_t length = utf8_length(content);
    if (length == 0) {
      const auto byte = std::to_integer<unsigned>(content[0]);
      text += "\\x";
      text.push_back(kHex[byte >> 4]);
      text.push_back(kHex[byte & 15]);
    } else {
      text.append(reinterpret_cast<const char*>(content.data()), length);
    }
    content = content.subspan(std::max<size_t>(length, 1));
  }
}

bool all_ascii_without_nul(std::span<const std::byte> content) {
  return std::all_of(content.begin(), content.end(), [](std::byte b) {
    const auto value = std::to_integer<unsigned>(b);
    return value != 0 && value < 0x80;
  });
}

}  // namespace

size_t string_head_size(const Layout& layout) {
  if (layout.traits.python2) return *layout.bytes.ob_sval;
  size_t size = std::max(*layout.unicode.length + 8, *layout.unicode.state + 4);
  if (layout.unicode.data.present()) size = std::max<size_t>(size, *layout.unicode.data + 8);
  return size;
}

uint32_t string_length_offset(const Layout& layout) {
  return layout.traits.python2 ? *layout.bytes.ob_size : *layout.unicode.length;
}

Read<StringHead> parse_string_head(const Layout& layout, RemoteAddress address,
                                   std::span<const std::byte> head) {
  constexpr uint64_t kMostCharacters = uint64_t{1} << 40;
  if (head.size() < string_head_size(layout)) return fault(FaultKind::unreadable, address);
  StringHead out;
  out.length = load<uint64_t>(head, string_length_offset(layout));
  if (out.length > kMostCharacters) return fault(FaultKind::implausible, address);
  if (layout.traits.python2) {
    out.kind = CharacterKind::bytes;
    out.content = address + *layout.bytes.ob_sval;
    return out;
  }
  const State state = state_of(layout, load<uint32_t>(head, *layout.unicode.state));
  if (state.kind != 1 && state.kind != 2 && state.kind != 4) return fault(FaultKind::implausible, address);
  if (state.ascii && state.kind != 1) return fault(FaultKind::implausible, address);
  out.kind = static_cast<CharacterKind>(state.kind);
  if (state.compact) {
    out.content =
        address + (state.ascii ? *layout.unicode.asciiobject_size : *layout.unicode.compactobject_size);
  } else {
    if (!layout.unicode.data.present()) return fault(FaultKind::unsupported, address);
    out.content = RemoteAddress(load<uint64_t>(head, *layout.unicode.data));
    if (!is_plausible(out.content)) return fault(FaultKind::implausible, address);
  }
  return out;
}

void append_utf8(std::string& text, CharacterKind kind, std::span<const std::byte> content) {
  if (kind == CharacterKind::bytes) return append_bytes(text, content);
  if (kind == CharacterKind::latin1 && all_ascii_without_nul(content)) {
    text.append(reinterpret_cast<const char*>(content.data()), content.size());
    return;
  }
  const auto width = static_cast<size_t>(kind);
  for (size_t at = 0; at + width <= content.size(); at += width) {
    uint32_t character = 0;
    std::memcpy(&character, content.data() + at, width);
    append_character(text, character);
  }
}

}  // namespace phlox::python
