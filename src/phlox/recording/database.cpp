#include "phlox/recording/database.h"

namespace phlox::recording {

Database open_database(const std::string& path, int flags) {
  sqlite3* raw = nullptr;
  sqlite3_open_v2(path.c_str(), &raw, flags | SQLITE_OPEN_NOMUTEX, nullptr);
  return Database(raw);
}

Statement prepare(sqlite3* database, const std::string& sql) {
  sqlite3_stmt* raw = nullptr;
  sqlite3_prepare_v2(database, sql.c_str(), -1, &raw, nullptr);
  return Statement(raw);
}

bool run(sqlite3* database, const std::string& sql) {
  return sqlite3_exec(database, sql.c_str(), nullptr, nullptr, nullptr) == SQLITE_OK;
}

std::optional<int64_t> first_number(sqlite3* database, const std::string& sql) {
  const Statement statement = prepare(database, sql);
  if (!statement || sqlite3_step(statement.get()) != SQLITE_ROW ||
      sqlite3_column_type(statement.get(), 0) != SQLITE_INTEGER)
    return {};
  return sqlite3_column_int64(statement.get(), 0);
}

std::string text_of(sqlite3_stmt* row, int column) {
  const auto* bytes = reinterpret_cast<const char*>(sqlite3_column_text(row, column));
  if (bytes == nullptr) return {};
  return {bytes, static_cast<size_t>(sqlite3_column_bytes(row, column))};
}

}  // namespace phlox::recording
