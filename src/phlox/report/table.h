// Formats numbers and names for people: words, and tables as plain text or Markdown. Names come from a
// target: any bytes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "phlox/base/number_words.h"
#include "phlox/base/text.h"
#include "phlox/view/view.h"

namespace phlox::report {

// Valid UTF-8 without control and deceiving characters (utf8.h): all other bytes are shown as \xNN, so that
// no name moves the cursor.
std::string plain(std::string_view name);

std::string weight_words(int64_t value, view::Weight weight);     // "1.23 s", "1,234", "1.23 MB"
std::string_view weight_name(view::Weight weight);                // "wall time", of time and samples
std::string location_words(std::string_view file, int32_t line);  // "app.py:7"
std::string part_words(Nanoseconds time, Nanoseconds whole);      // "12.3 %"; "-": none
// "read (app.py:7)", with the last part of the path: for tables with two such columns.
std::string place_words(const std::string& name, const std::string& file, int32_t line);

// The largest width of a name, so that a long one does not widen the table. Longer names are shortened where
// they matter least.
inline constexpr size_t kWidestName = 60;
inline constexpr size_t kWidestPlace = 72;

// Text in brackets goes first, then the middle: "Map<…>::insert", "_ZN4core…fmt". `plain_name`: from plain().
std::string fitted_name(const std::string& plain_name, size_t width);
// The end of a path matters most: "…/numpy/core/fromnumeric.py:59".
std::string fitted_place(const std::string& plain_place, size_t width);

enum class Fit : uint8_t { whole, name, place };

struct Column {
  std::string header;
  bool right = false;
  Fit fit = Fit::whole;
};

struct Table {
  std::string title;
  std::string note;  // a line below the title
  std::vector<Column> columns;
  std::vector<std::vector<std::string>> rows;  // plain
  size_t left_out = 0;
};

std::string table_text(const Table& table);
std::string table_markdown(const Table& table);
std::string markdown_escaped(std::string_view plain_text);

}  // namespace phlox::report
