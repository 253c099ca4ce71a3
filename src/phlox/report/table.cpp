#include "phlox/report/table.h"

#include <fmt/format.h>

#include <algorithm>

#include "phlox/base/utf8.h"

namespace phlox::report {
namespace {

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
    const Character character = first_character(name);
    const std::string_view bytes = name.substr(0, character.bytes);
    if (character.valid && !is_control(character.code) && !is_deceiving(character.code)) {
      out += bytes;
    } else {
      for (const char c : bytes) out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    }
    name.remove_prefix(character.bytes);
  }
  return out;
}

std::string weight_words(int64_t value, view::Weight weight) {
  if (view::is_time(weight)) return time_words(value);
  const uint64_t size = value < 0 ? -static_cast<uint64_t>(value) : static_cast<uint64_t>(value);
  return (value < 0 ? "-" : "") + (weight == view::Weight::bytes ? byte_words(size) : count_words(size));
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
