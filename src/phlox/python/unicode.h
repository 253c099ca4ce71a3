// CPython's str (and 2.7's) from copied bytes. Pure: parses heads, makes UTF-8; reads nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "phlox/base/address.h"
#include "phlox/python/layout.h"
#include "phlox/python/read_fault.h"

namespace phlox::python {

// The form of a str's characters in memory.
enum class CharacterKind : uint8_t {
  bytes = 0,   // 2.7's str: any encoding, UTF-8 where it is valid
  latin1 = 1,  // PyUnicode_1BYTE_KIND
  ucs2 = 2,
  ucs4 = 4,
};

struct StringHead {
  CharacterKind kind = CharacterKind::latin1;
  uint64_t length = 0;  // characters
  RemoteAddress content;
  uint64_t content_bytes() const {
    return kind == CharacterKind::bytes ? length : length * static_cast<uint64_t>(kind);
  }
};

// The bytes of a str object that parse_string_head() needs, from its start.
size_t string_head_size(const Layout& layout);
// The offset of the length, and the end of the immutable part of the head.
uint32_t string_length_offset(const Layout& layout);

// `head`: string_head_size() bytes of the str at `address`.
Read<StringHead> parse_string_head(const Layout& layout, RemoteAddress address,
                                   std::span<const std::byte> head);

// Appends the characters as UTF-8. Lone surrogates become \udcXX, NUL becomes \x00, an invalid character
// becomes U+FFFD; in 2.7's str, invalid UTF-8 becomes \xNN. Characters cut in the middle are left out.
void append_utf8(std::string& text, CharacterKind kind, std::span<const std::byte> content);

}  // namespace phlox::python
