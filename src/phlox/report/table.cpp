#include "phlox/report/table.h"

#include <fmt/format.h>

#include <algorithm>

#include "phlox/base/number_words.h"

namespace phlox::report {
namespace {

// Length of the valid UTF-8 character at the start; 0: none.
size_t character_length(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return 1;
  const size_t length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4 || text.size() < length) return 0;
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
  }
  if ((lead == 0xe0 && byte(1) < 0xa0) || (lead == 0xed && byte(1) > 0x9f) ||
      (lead == 0xf0 && byte(1) < 0x90) || (lead == 0xf4 && byte(1) > 0x8f))
    return 0;
  return length;
}

// C0, DEL, C1, and the characters that change the direction of the following text (U+061C, U+200E, U+200F,
// U+202A to E, U+2066 to 9) or break lines.
bool is_shown(std::string_view character) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(character[i]); };
  if (character.size() == 1) return byte(0) >= 0x20 && byte(0) != 0x7f;
  if (character.size() == 2)
    return !(byte(0) == 0xc2 && byte(1) < 0xa0) && !(byte(0) == 0xd8 && byte(1) == 0x9c);
  if (character.size() != 3 || byte(0) != 0xe2) return true;
  if (byte(1) == 0x80) return !(byte(2) == 0x8e || byte(2) == 0x8f || (byte(2) >= 0xa8 && byte(2) <= 0xae));
  return !(byte(1) == 0x81 && byte(2) >= 0xa6 && byte(2) <= 0xa9);
}

size_t columns_of(std::string_view text) {
  return static_cast<size_t>(std::count_if(
      text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
}

// Where character `count` begins; the end if there are fewer.
size_t place_of_character(std::string_view text, size_t count) {
  size_t at = 0;
  for (; at < text.size(); ++at) {
    const bool begins = (static_cast<unsigned char>(text[at]) & 0xc0) != 0x80;
    if (begins && count-- == 0) break;
  }
  return at;
}

std::string_view first_columns(std::string_view text, size_t count) {
  return text.substr(0, place_of_character(text, count));
}
std::string_view last_columns(std::string_view text, size_t count) {
  const size_t all = columns_of(text);
  return count >= all ? text : text.substr(place_of_character(text, all - count));
}

constexpr std::string_view kCut = "…";
constexpr size_t kShortInner = 12;

// The longest text between matching outermost brackets; empty: none would become shorter.
std::string_view longest_in_brackets(std::string_view text) {
  std::string_view longest;
  size_t depth = 0, begin = 0;
  for (size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    // The arrow of "fn() -> T" closes nothing, and neither do operators.
    if (c == '<' || c == '(') {
      if (depth++ == 0) begin = at + 1;
    } else if ((c == ')' || (c == '>' && at > 0 && text[at - 1] != '-')) && depth > 0 && --depth == 0) {
      if (at - begin > std::max(longest.size(), kCut.size())) longest = text.substr(begin, at - begin);
    }
  }
  return longest;
}

std::string fitted(const std::string& cell, Fit fit) {
  switch (fit) {
    case Fit::name:
      return fitted_name(cell, kWidestName);
    case Fit::place:
      return fitted_place(cell, kWidestPlace);
    case Fit::whole:
      break;
  }
  return cell;
}

std::string left_out_words(const Table& table) {
  return table.left_out > 0 ? fmt::format("{} more", count_words(table.left_out)) : std::string();
}

}  // namespace

std::string plain(std::string_view name) {
  std::string out;
  out.reserve(name.size());
  while (!name.empty()) {
    const size_t length = character_length(name);
    if (length != 0 && is_shown(name.substr(0, length))) {
      out += name.substr(0, length);
      name.remove_prefix(length);
      continue;
    }
    for (char c : name.substr(0, std::max<size_t>(length, 1)))
      out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    name.remove_prefix(std::max<size_t>(length, 1));
  }
  return out;
}

std::string time_words(Nanoseconds value) {
  return phlox::time_words(value);
}

std::string weight_words(int64_t value, view::Weight weight) {
  if (view::is_time(weight)) return time_words(value);
  const uint64_t size = value < 0 ? -static_cast<uint64_t>(value) : static_cast<uint64_t>(value);
  return (value < 0 ? "-" : "") + (weight == view::Weight::bytes ? byte_words(size) : count_words(size));
}

std::string share_words(double share) {
  return phlox::share_words(share);
}

std::string points_words(double share) {
  return phlox::points_words(share);
}

std::string_view weight_name(view::Weight weight) {
  switch (weight) {
    case view::Weight::wall:
      return "wall time";
    case view::Weight::cpu:
      return "CPU time";
    case view::Weight::samples:
      return "samples";
    case view::Weight::count:
    case view::Weight::bytes:
      return "event";
  }
  return "";
}

std::string location_words(std::string_view file, int32_t line) {
  if (file.empty()) return {};
  return line > 0 ? fmt::format("{}:{}", plain(file), line) : plain(file);
}

std::string part_words(Nanoseconds time, Nanoseconds whole) {
  return time == 0 ? "-" : share_words(whole > 0 ? double(time) / double(whole) : 0);
}

std::string place_words(const std::string& name, const std::string& file, int32_t line) {
  if (file.empty()) return plain(name);
  return fmt::format("{} ({})", plain(name), location_words(base_name(file), line));
}

std::string fitted_name(const std::string& plain_name, size_t width) {
  std::string name = plain_name;
  while (columns_of(name) > width) {
    const std::string_view inner = longest_in_brackets(name);
    // Shortening a short one, such as a system call's name, saves little, unless that is enough.
    const size_t won = columns_of(inner) - 1;
    if (inner.empty() || (won < kShortInner && columns_of(name) - won > width)) break;
    name.replace(static_cast<size_t>(inner.data() - name.data()), inner.size(), kCut);
  }
  if (columns_of(name) <= width) return name;
  // The end is the function's own name, the beginning its owner.
  const size_t left = width > 0 ? width - 1 : 0, end = left - left / 3;
  return std::string(first_columns(name, left - end)) + std::string(kCut) +
         std::string(last_columns(name, end));
}

std::string fitted_place(const std::string& plain_place, size_t width) {
  if (columns_of(plain_place) <= width || width == 0) return plain_place;
  std::string_view end = last_columns(plain_place, width - 1);
  // Start at a folder's name, if there is one.
  if (const size_t slash = end.find('/'); slash != std::string_view::npos) end.remove_prefix(slash);
  return std::string(kCut) + std::string(end);
}

std::string table_text(const Table& whole) {
  Table table = whole;
  for (auto& row : table.rows) {
    for (size_t c = 0; c < table.columns.size(); ++c) row[c] = fitted(row[c], table.columns[c].fit);
  }
  std::string out = table.title + "\n";
  if (!table.note.empty()) out += "  " + table.note + "\n";
  if (table.rows.empty()) return out + "  (nothing)\n";
  std::vector<size_t> widths;
  for (size_t c = 0; c < table.columns.size(); ++c) {
    size_t width = columns_of(table.columns[c].header);
    for (const auto& row : table.rows) width = std::max(width, columns_of(row[c]));
    widths.push_back(width);
  }
  auto line = [&](auto&& cell) {
    std::string text;
    for (size_t c = 0; c < table.columns.size(); ++c) {
      const std::string& value = cell(c);
      const std::string pad(widths[c] - columns_of(value), ' ');
      text += "  " + (table.columns[c].right ? pad + value : value + pad);
    }
    text.erase(text.find_last_not_of(' ') + 1);
    out += text + "\n";
  };
  line([&](size_t c) -> const std::string& { return table.columns[c].header; });
  for (const auto& row : table.rows) line([&](size_t c) -> const std::string& { return row[c]; });
  if (table.left_out > 0) out += "  (" + left_out_words(table) + ")\n";
  return out;
}

std::string markdown_escaped(std::string_view text) {
  std::string out;
  for (char c : text) {
    if (std::string_view("\\`*_{}[]<>()#+!|~&").find(c) != std::string_view::npos) out += '\\';
    out += c;
  }
  return out;
}

std::string table_markdown(const Table& table) {
  std::string out = "## " + table.title + "\n\n";
  if (!table.note.empty()) out += markdown_escaped(table.note) + "\n\n";
  if (table.rows.empty()) return out + "Nothing.\n";
  out += "|";
  for (const Column& column : table.columns) out += " " + column.header + " |";
  out += "\n|";
  for (const Column& column : table.columns) out += column.right ? " ---: |" : " --- |";
  for (const auto& row : table.rows) {
    out += "\n|";
    for (const std::string& cell : row) out += " " + markdown_escaped(cell) + " |";
  }
  out += "\n";
  if (table.left_out > 0) out += "\n" + left_out_words(table) + "\n";
  return out;
}

}  // namespace phlox::report
