// One row of a recording, column by column, with each number checked before it becomes an id, a time or an
// enum. Knows no table: the reader of a table knows its columns.
#pragma once

#include <fmt/format.h>
#include <sqlite3.h>

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

#include "phlox/base/id.h"
#include "phlox/recording/database.h"

namespace phlox::recording {

// Times of a host that has been up for less than 36 years, so that a start and a length can be added.
inline constexpr int64_t kMaximumTime = int64_t{1} << 60;

// Remembers the first error; later values are zero.
class Columns {
 public:
  // `text_left`: for the texts of the file, which together are no longer than the file.
  Columns(sqlite3_stmt* statement, std::string_view table, uint64_t& text_left)
      : statement_(statement), table_(table), text_left_(text_left) {}

  void next_row() {
    column_ = 0;
    ++row_;
  }
  void reject_row(std::string_view why) {
    if (wrong_.empty()) wrong_ = fmt::format("{} row {} {}", table_, row_, why);
  }
  bool failed() const { return !wrong_.empty(); }
  const std::string& wrong() const { return wrong_; }

  int64_t integer(int64_t low, int64_t high) {
    const int column = column_++;
    // Reads type and number of the column at once; alone with the connection, its value needs no copy.
    sqlite3_value* const cell = sqlite3_column_value(statement_, column);
    if (sqlite3_value_type(cell) != SQLITE_INTEGER) return reject(column, "is no integer");
    const int64_t value = sqlite3_value_int64(cell);
    if (value < low || value > high) return reject(column, fmt::format("is {}, out of range", value));
    return value;
  }
  template <class T>
  T number() {
    return static_cast<T>(integer(std::numeric_limits<T>::min(), std::numeric_limits<T>::max()));
  }
  int64_t time() { return integer(-kMaximumTime, kMaximumTime); }
  // NULL: none.
  std::optional<int64_t> optional_time() {
    if (sqlite3_column_type(statement_, column_) != SQLITE_NULL) return time();
    ++column_;
    return {};
  }
  // Unsigned 64-bit numbers are stored as SQLite's signed ones.
  uint64_t bits() {
    return static_cast<uint64_t>(
        integer(std::numeric_limits<int64_t>::min(), std::numeric_limits<int64_t>::max()));
  }
  template <class Enum>
  Enum value(Enum last) {
    const int column = column_;
    const int64_t value = integer(0, 255);
    if (value > static_cast<int64_t>(last)) {
      reject(column, fmt::format("has a meaning that this phlox does not know: {}", value));
      return Enum{};
    }
    return static_cast<Enum>(value);
  }
  // A row of another table, 1..count. NULL: none.
  template <class Tag>
  Id<Tag> optional_reference(size_t count) {
    if (sqlite3_column_type(statement_, column_) == SQLITE_NULL) {
      ++column_;
      return {};
    }
    return reference<Tag>(count);
  }
  template <class Tag>
  Id<Tag> reference(size_t count) {
    return Id<Tag>(static_cast<uint32_t>(integer(1, static_cast<int64_t>(count))));
  }
  // A small number; NULL if not known.
  int16_t small_or_none(int16_t low = 0, int16_t high = std::numeric_limits<int16_t>::max()) {
    if (sqlite3_column_type(statement_, column_) == SQLITE_NULL) {
      ++column_;
      return -1;
    }
    return static_cast<int16_t>(integer(low, high));
  }
  // NULL: 0.
  int64_t optional_integer(int64_t low, int64_t high) {
    if (sqlite3_column_type(statement_, column_) != SQLITE_NULL) return integer(low, high);
    ++column_;
    return 0;
  }
  // Ids count up from 1 without a gap: a row out of order is damage, and a table cannot be endless.
  void row_id() {
    const int column = column_;
    const int64_t id = integer(1, std::numeric_limits<uint32_t>::max());
    if (!failed() && id != row_) reject(column, fmt::format("is {} where {} comes next", id, row_));
  }
  uint32_t row() const { return static_cast<uint32_t>(row_); }
  // NULL: empty.
  std::string optional_text() {
    if (sqlite3_column_type(statement_, column_) != SQLITE_NULL) return text();
    ++column_;
    return {};
  }
  std::string text() {
    const int column = column_++;
    if (sqlite3_column_type(statement_, column) != SQLITE_TEXT) {
      reject(column, "is no text");
      return {};
    }
    // An empty one counts as a byte as well.
    const auto size = static_cast<uint64_t>(sqlite3_column_bytes(statement_, column)) + 1;
    if (size > text_left_) {
      reject(column, "is longer than what is left of the file");
      return {};
    }
    text_left_ -= size;
    return text_of(statement_, column);
  }

  // NULL: none.
  std::optional<std::string_view> optional_blob() {
    const int column = column_++;
    if (sqlite3_column_type(statement_, column) == SQLITE_NULL) return {};
    if (sqlite3_column_type(statement_, column) != SQLITE_BLOB) {
      reject(column, "is no blob");
      return {};
    }
    const void* bytes = sqlite3_column_blob(statement_, column);
    const auto size = static_cast<size_t>(sqlite3_column_bytes(statement_, column));
    return bytes == nullptr ? std::string_view() : std::string_view(static_cast<const char*>(bytes), size);
  }

 private:
  int64_t reject(int column, std::string_view why) {
    if (wrong_.empty()) {
      const char* name = sqlite3_column_name(statement_, column);
      wrong_ = fmt::format("{} row {}: {} {}", table_, row_, name != nullptr ? name : "?", why);
    }
    return 0;
  }
  sqlite3_stmt* statement_;
  std::string_view table_;
  uint64_t& text_left_;
  std::string wrong_;
  int64_t row_ = 0;
  int column_ = 0;
};

}  // namespace phlox::recording
