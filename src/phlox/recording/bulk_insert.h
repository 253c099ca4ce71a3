// Inserts rows of numbers into one table, several with one statement: SQLite then needs a third to a half of
// the time for each. Rows wait until flush(), which the writer calls before anything reads the table or
// changes a row of it.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

#include "phlox/recording/database.h"

namespace phlox::recording {

class BulkInsert {
 public:
  using Value = std::optional<int64_t>;  // none is NULL

  // `into`: "INSERT INTO sample (rowid, thread)"; false: it cannot be prepared.
  bool prepare(sqlite3* database, const std::string& into, size_t columns);
  void finalize();

  // The first value is the row's number. False: SQLite failed, now or in a row before.
  bool put(std::initializer_list<Value> row);
  bool flush();

 private:
  // Sizes of the statements, tried in this order; more than 64 rows gain nothing.
  static constexpr std::array<size_t, 4> kRows = {64, 16, 4, 1};

  struct Prepared {
    Statement statement;
    // The values that SQLite has from the last time: most columns seldom change.
    std::vector<Value> bound;
  };
  bool run(Prepared& prepared, const Value*& at);

  size_t columns_ = 0;
  std::array<Prepared, kRows.size()> prepared_;
  std::vector<Value> waiting_;
  int64_t previous_ = 0, greatest_ = 0;  // numbers of rows
};

}  // namespace phlox::recording
