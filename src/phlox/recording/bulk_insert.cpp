#include "phlox/recording/bulk_insert.h"

#include <algorithm>

namespace phlox::recording {

bool BulkInsert::prepare(sqlite3* database, const std::string& into, size_t columns) {
  columns_ = columns;
  std::string row = "(?";
  for (size_t column = 1; column < columns; ++column) row += ",?";
  row += ')';
  for (size_t i = 0; i < kRows.size(); ++i) {
    std::string sql = into + " VALUES " + row;
    for (size_t more = 1; more < kRows[i]; ++more) sql += ',' + row;
    prepared_[i] = {recording::prepare(database, sql), std::vector<Value>(kRows[i] * columns)};
    if (!prepared_[i].statement) return false;
  }
  waiting_.reserve(kRows.front() * columns);
  return true;
}

void BulkInsert::finalize() {
  for (Prepared& prepared : prepared_) prepared.statement.reset();
}

bool BulkInsert::put(std::initializer_list<Value> row) {
  const int64_t number = row.begin()->value_or(0);
  // SQLite gives NULL the number after the greatest one, without a search.
  const bool follows = !waiting_.empty() && previous_ == greatest_ && number == greatest_ + 1;
  waiting_.insert(waiting_.end(), row);
  if (follows) waiting_[waiting_.size() - columns_] = std::nullopt;
  previous_ = number;
  greatest_ = std::max(greatest_, number);
  return waiting_.size() < kRows.front() * columns_ || flush();
}

bool BulkInsert::flush() {
  if (waiting_.empty()) return true;
  const Value* at = waiting_.data();
  const Value* const end = at + waiting_.size();
  bool good = true;
  for (Prepared& prepared : prepared_) {
    while (good && static_cast<size_t>(end - at) >= prepared.bound.size()) good = run(prepared, at);
  }
  waiting_.clear();
  return good;
}

bool BulkInsert::run(Prepared& prepared, const Value*& at) {
  sqlite3_stmt* const statement = prepared.statement.get();
  int column = 0;
  for (Value& bound : prepared.bound) {
    ++column;
    const Value value = *at++;
    if (value == bound) continue;
    bound = value;
    if (value) {
      sqlite3_bind_int64(statement, column, *value);
    } else {
      sqlite3_bind_null(statement, column);
    }
  }
  const bool good = sqlite3_step(statement) == SQLITE_DONE;
  sqlite3_reset(statement);
  return good;
}

}  // namespace phlox::recording
