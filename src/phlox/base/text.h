// Text functions that several directories share. None throws, and none knows the meaning of the text.
#pragma once

#include <charconv>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace phlox {

// The part after the last slash; all of it if there is none.
inline std::string_view base_name(std::string_view path) {
  return path.substr(path.rfind('/') + 1);
}

// The whole text as one number: no blank, no sign that the type lacks, nothing after it, and not infinite.
template <class Number>
std::optional<Number> parse_number(std::string_view text) {
  Number number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size()) return {};
  if constexpr (std::is_floating_point_v<Number>) {
    if (!std::isfinite(number)) return {};
  }
  return number;
}

// Removes the number at the beginning of the text. False: there is none, and the text is unchanged.
template <class Number>
bool take_number(std::string_view& text, Number& number, int base = 10) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, base);
  if (error != std::errc{}) return false;
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  return true;
}

// The length of a unit in nanoseconds, in all times that a person writes: ns, us, ms, s, m, h.
inline std::optional<double> time_unit(std::string_view name) {
  constexpr std::pair<std::string_view, double> kUnits[] = {{"ns", 1},  {"us", 1e3}, {"ms", 1e6},
                                                            {"s", 1e9}, {"m", 60e9}, {"h", 3600e9}};
  for (const auto& [unit, ns] : kUnits) {
    if (name == unit) return ns;
  }
  return {};
}

// "10", "1.5", "500ms", "2m" in nanoseconds; without a unit it is seconds.
inline std::optional<double> parse_nanoseconds(std::string_view text) {
  const size_t digits = text.find_last_of("0123456789.") + 1;  // 0: none
  const auto scale = digits == text.size() ? std::optional(1e9) : time_unit(text.substr(digits));
  const auto number = parse_number<double>(text.substr(0, digits));
  if (!scale || !number) return {};
  return *number * *scale;
}

// As one word of a shell's command line.
inline std::string single_quoted(std::string_view text) {
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

// ASCII letters only, whatever the locale is.
inline std::string lower_case(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return out;
}

// At most so many bytes of the beginning, and no part of a letter.
inline std::string_view start_of(std::string_view text, size_t most) {
  if (text.size() <= most) return text;
  while (most > 0 && (static_cast<unsigned char>(text[most]) & 0xc0) == 0x80) --most;
  return text.substr(0, most);
}

// "spark-submit --master local[4] --conf ...": the beginning of a text of thousands of letters, such as a
// command line. Unchanged if it has at most `most` bytes; otherwise it ends after a whole word if that keeps
// more than half of `most`, and never within a letter.
inline std::string shortened(std::string_view text, size_t most) {
  if (text.size() <= most) return std::string(text);
  const size_t end = text.rfind(' ', most);
  if (end != std::string_view::npos && end > most / 2) return std::string(text.substr(0, end)) + " ...";
  return std::string(start_of(text, most)) + "...";
}

// "1,234,567"
inline std::string count_words(uint64_t value) {
  std::string digits = std::to_string(value);
  for (size_t at = digits.size(); at > 3;) digits.insert(at -= 3, ",");
  return digits;
}

// "1.23 MB", "17 bytes": three digits, units of a thousand.
inline std::string byte_words(uint64_t value) {
  constexpr std::string_view kUnits[] = {" kB", " MB", " GB", " TB", " PB", " EB"};
  if (value < 1000) return std::to_string(value) + (value == 1 ? " byte" : " bytes");
  double number = static_cast<double>(value) / 1000;
  size_t unit = 0;
  for (; number >= 999.5 && unit + 1 < std::size(kUnits); ++unit) number /= 1000;
  const int digits = number >= 99.95 ? 0 : number >= 9.995 ? 1 : 2;
  char text[32];
  const auto end = std::to_chars(std::begin(text), std::end(text), number, std::chars_format::fixed, digits);
  return std::string(text, end.ptr) + std::string(kUnits[unit]);
}

}  // namespace phlox
