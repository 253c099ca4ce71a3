// Values of a row of the recording, for a prepared statement. Used by Writer.
#pragma once

#include <sqlite3.h>

#include <cstdint>
#include <optional>
#include <string_view>
#include <type_traits>

#include "phlox/base/id.h"

namespace phlox::recording {

// Rows refer by id; none is NULL. `before`: rows of the table from earlier recorders.
template <class Tag>
std::optional<int64_t> row_of(Id<Tag> id, uint32_t before) {
  return id ? std::optional(int64_t{before} + id.value) : std::nullopt;
}
template <class Tag>
std::optional<int64_t> row_of(const std::optional<Id<Tag>>& id, uint32_t before) {
  return id ? row_of(*id, before) : std::nullopt;
}
// 0 becomes NULL.
inline std::optional<int64_t> reference(int64_t row) {
  return row != 0 ? std::optional(row) : std::nullopt;
}

// Binds the values of a row in the order of its columns.
class Row {
 public:
  explicit Row(sqlite3_stmt* statement) : statement_(statement) {}
  Row& integer(int64_t value) {
    sqlite3_bind_int64(statement_, ++column_, value);
    return *this;
  }
  template <class Enum>
  requires std::is_enum_v<Enum> Row& value(Enum e) { return integer(static_cast<int64_t>(e)); }
  Row& optional(std::optional<int64_t> value) { return value ? integer(*value) : null(); }
  template <class AnyId>
  Row& id(const AnyId& id, uint32_t before) {
    return optional(row_of(id, before));
  }
  Row& non_negative(int64_t value) { return value >= 0 ? integer(value) : null(); }
  // Empty becomes NULL.
  Row& optional_text(std::string_view value) { return value.empty() ? null() : text(value); }
  // The caller keeps the text until the statement has run.
  Row& text(std::string_view value) {
    sqlite3_bind_text(statement_, ++column_, value.data(), static_cast<int>(value.size()), SQLITE_STATIC);
    return *this;
  }

  // The caller keeps the bytes until the statement has run.
  Row& optional_blob(std::optional<std::string_view> bytes) {
    if (!bytes) return null();
    sqlite3_bind_blob(statement_, ++column_, bytes->data(), static_cast<int>(bytes->size()), SQLITE_STATIC);
    return *this;
  }

 private:
  Row& null() {
    sqlite3_bind_null(statement_, ++column_);
    return *this;
  }
  sqlite3_stmt* statement_;
  int column_ = 0;
};

}  // namespace phlox::recording
