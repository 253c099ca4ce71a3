// Foreign bytes as text that every JSON parser takes.
#pragma once

#include <string>
#include <string_view>

namespace phlox {

// Bytes that are not UTF-8 become U+FFFD, one for each.
inline std::string valid_utf8(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const auto lead = static_cast<unsigned char>(text[0]);
    size_t length = lead < 0x80                   ? 1
                    : lead >= 0xc2 && lead < 0xe0 ? 2
                    : lead >= 0xe0 && lead < 0xf0 ? 3
                    : lead >= 0xf0 && lead < 0xf5 ? 4
                                                  : 0;
    bool valid = length != 0 && length <= text.size();
    for (size_t i = 1; valid && i < length; ++i) valid = (static_cast<unsigned char>(text[i]) & 0xc0) == 0x80;
    if (valid && length > 2) {
      const auto second = static_cast<unsigned char>(text[1]);
      valid = !((lead == 0xe0 && second < 0xa0) || (lead == 0xed && second > 0x9f) ||
                (lead == 0xf0 && second < 0x90) || (lead == 0xf4 && second > 0x8f));
    }
    out += valid ? text.substr(0, length) : std::string_view("\xef\xbf\xbd");
    text.remove_prefix(valid ? length : 1);
  }
  return out;
}

}  // namespace phlox
