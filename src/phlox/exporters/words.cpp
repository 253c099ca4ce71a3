#include "phlox/exporters/words.h"

#include <fmt/format.h>

#include <algorithm>

#include "phlox/base/number_words.h"

namespace phlox::exporters {
namespace {

constexpr char32_t kReplacement = 0xfffd;

struct Decoded {
  char32_t code = kReplacement;
  size_t bytes = 1;
};

// Decodes one code point according to Unicode 15, 3.9 D92 (well-formed byte sequences); a byte that begins
// none yields one U+FFFD.
Decoded decode(std::string_view text) {
  auto byte = [&](size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U; };
  auto follows = [&](size_t i) { return (byte(i) & 0xc0U) == 0x80U; };
  unsigned first = byte(0);
  if (first < 0x80) return {first, 1};
  if (first >= 0xc2 && first <= 0xdf && follows(1)) return {(first & 0x1fU) << 6 | (byte(1) & 0x3fU), 2};
  if (first >= 0xe0 && first <= 0xef && follows(1) && follows(2)) {
    char32_t code = (first & 0x0fU) << 12 | (byte(1) & 0x3fU) << 6 | (byte(2) & 0x3fU);
    if (code >= 0x800 && (code < 0xd800 || code > 0xdfff)) return {code, 3};
  }
  if (first >= 0xf0 && first <= 0xf4 && follows(1) && follows(2) && follows(3)) {
    char32_t code =
        (first & 0x07U) << 18 | (byte(1) & 0x3fU) << 12 | (byte(2) & 0x3fU) << 6 | (byte(3) & 0x3fU);
    if (code >= 0x10000 && code <= 0x10ffff) return {code, 4};
  }
  return {};
}

// Characters that change the direction of text, or are invisible and join or break lines: a name that
// contains them could be mistaken for another.
bool is_deceiving(char32_t code) {
  return code == 0x061c || (code >= 0x200b && code <= 0x200f) || (code >= 0x2028 && code <= 0x202e) ||
         (code >= 0x2060 && code <= 0x206f) || code == 0xfeff;
}

struct Range {
  char32_t first;
  char32_t last;
};

// East Asian Wide, Fullwidth and emoji blocks, coarsely (Unicode 15 EastAsianWidth.txt): too wide rather than
// too narrow.
constexpr Range kWide[] = {{0x1100, 0x115f},   {0x231a, 0x231b},  {0x2329, 0x232a},   {0x23e9, 0x23f3},
                           {0x25fd, 0x25fe},   {0x2600, 0x27bf},  {0x2b1b, 0x2b55},   {0x2e80, 0xa4cf},
                           {0xa960, 0xa97f},   {0xac00, 0xd7a3},  {0xf900, 0xfaff},   {0xfe10, 0xfe6f},
                           {0xff00, 0xff60},   {0xffe0, 0xffe6},  {0x16fe0, 0x18aff}, {0x1aff0, 0x1b2ff},
                           {0x1f000, 0x1faff}, {0x20000, 0x3fffd}};
constexpr Range kNoWidth[] = {{0x0300, 0x036f}, {0x0483, 0x0489}, {0x0591, 0x05bd},
                              {0x064b, 0x065f}, {0x1ab0, 0x1aff}, {0x1dc0, 0x1dff},
                              {0x20d0, 0x20ff}, {0xfe00, 0xfe0f}, {0xfe20, 0xfe2f}};

template <size_t N>
bool within(char32_t code, const Range (&ranges)[N]) {
  for (const Range& range : ranges) {
    if (code >= range.first && code <= range.last) return true;
  }
  return false;
}

size_t columns_of(char32_t code) {
  if (within(code, kNoWidth)) return 0;
  return within(code, kWide) ? 2 : 1;
}

}  // namespace

std::string displayable(std::string_view name) {
  std::string out;
  out.reserve(name.size());
  for (size_t at = 0; at < name.size();) {
    auto [code, bytes] = decode(name.substr(at));
    if (code < 0x20 || (code >= 0x7f && code <= 0x9f)) {
      out += fmt::format("\\x{:02x}", static_cast<unsigned>(code));
    } else if (is_deceiving(code)) {
      out += fmt::format("\\u{:04x}", static_cast<unsigned>(code));
    } else if (code == kReplacement || code == 0xfffe || code == 0xffff) {
      out += "\xef\xbf\xbd";
    } else {
      out += name.substr(at, bytes);
    }
    at += bytes;
  }
  return out;
}

size_t visible_character(std::string_view text) {
  if (text.empty()) return 0;
  const auto [code, bytes] = decode(text);
  const bool is_control = code < 0x20 || (code >= 0x7f && code <= 0x9f);
  const bool is_invalid = code == kReplacement && bytes == 1;
  return is_control || is_deceiving(code) || is_invalid ? 0 : bytes;
}

std::string xml_escaped(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (char c : text) {
    switch (c) {
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '&':
        out += "&amp;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

size_t display_columns(std::string_view text) {
  size_t columns = 0;
  for (size_t at = 0; at < text.size();) {
    auto [code, bytes] = decode(text.substr(at));
    columns += columns_of(code);
    at += bytes;
  }
  return columns;
}

std::string fit_columns(std::string_view text, size_t columns) {
  if (text.size() <= columns || display_columns(text) <= columns) return std::string(text);
  if (columns < 3) return {};
  size_t used = 0;
  size_t characters = 0;
  size_t at = 0;
  while (at < text.size()) {
    auto [code, bytes] = decode(text.substr(at));
    if (used + columns_of(code) > columns - 1) break;
    used += columns_of(code);
    ++characters;
    at += bytes;
  }
  if (characters < 2) return {};
  std::string out(text.substr(0, at));
  while (out.ends_with(' ')) out.pop_back();
  return out + "…";
}

std::string fit_name(std::string_view name, size_t columns) {
  const size_t plus = name.rfind("+0x");
  const bool unnamed = plus != std::string_view::npos && plus > 0 &&
                       name.find_first_not_of("0123456789abcdef", plus + 3) == std::string_view::npos;
  if (!unnamed || display_columns(name) <= columns) return fit_columns(name, columns);
  const std::string_view address = name.substr(plus);
  if (columns < address.size() + 1) return fit_columns(name, columns);
  std::string module = fit_columns(name.substr(0, plus), columns - address.size());
  return (module.empty() ? "…" : module) + std::string(address);
}

std::vector<std::string> wrap_columns(std::string_view text, size_t columns) {
  std::vector<std::string> lines;
  std::string line;
  for (size_t at = 0; at <= text.size();) {
    size_t end = std::min(text.find(' ', at), text.size());
    std::string word(text.substr(at, end - at));
    if (!line.empty() && display_columns(line) + 1 + display_columns(word) > columns) {
      lines.push_back(std::move(line));
      line = std::move(word);
    } else {
      line += (line.empty() ? "" : " ") + word;
    }
    at = end + 1;
  }
  if (!line.empty()) lines.push_back(std::move(line));
  return lines;
}

// These characters occur in JSON only inside strings, where \u escapes mean the same.
std::string safe_in_markup(std::string_view json) {
  std::string out;
  out.reserve(json.size());
  for (char c : json) {
    if (c == '<' || c == '>' || c == '&') {
      out += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
    } else {
      out += c;
    }
  }
  return out;
}

std::string weight_words(int64_t value, view::Weight weight) {
  if (weight == view::Weight::samples) {
    return count_words(static_cast<uint64_t>(value)) + (value == 1 ? " sample" : " samples");
  }
  if (weight == view::Weight::count) return count_words(static_cast<uint64_t>(std::max<int64_t>(0, value)));
  if (weight == view::Weight::bytes) return byte_words(static_cast<uint64_t>(std::max<int64_t>(0, value)));
  return time_words(value);
}

std::string share_words(double part, double whole) {
  return phlox::share_words(whole > 0 ? part / whole : 0);
}

std::string size_words(uint64_t bytes) {
  return fmt::format("{:.1f} MB", double(bytes) / 1e6);
}

}  // namespace phlox::exporters
