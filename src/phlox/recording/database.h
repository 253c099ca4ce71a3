// SQLite's handles, held by objects, and what several files of this room do with them. Whether what is in a
// file may be believed is not asked here (opened_recording.h).
#pragma once

#include <sqlite3.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "phlox/base/place.h"

namespace phlox::recording {

struct CloseDatabase {
  void operator()(sqlite3* database) const { sqlite3_close(database); }
};
struct Finalize {
  void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
};
using Database = std::unique_ptr<sqlite3, CloseDatabase>;
using Statement = std::unique_ptr<sqlite3_stmt, Finalize>;

// For one thread. Whether it could be opened says sqlite3_errcode(); none where there is no memory.
// Nothing but a regular file is opened, none that a link leads to and, of those beside a recording, none that
// has another name as well: a pipe would hang us, a link lead out of the folder.
Database open_database(const std::string& path, int flags);
// The same of a file of this folder, whatever becomes of the path to it.
Database open_database(const Place& place, int flags);
// Another file of the folder.
Database open_database(const Place& place, const std::string& name, int flags);

// None: it cannot be run, sqlite3_errmsg() says why.
Statement prepare(sqlite3* database, const std::string& sql);
// Statements that give no rows; false: one failed.
bool run(sqlite3* database, const std::string& sql);
// The first column of the first row; none where that is no integer, or the query fails.
std::optional<int64_t> first_number(sqlite3* database, const std::string& sql);
// Empty for NULL; may hold any bytes.
std::string text_of(sqlite3_stmt* row, int column);

// Calls `row` with the statement for every row; false: the query failed.
template <class OneRow>
bool each_row(sqlite3* database, const std::string& sql, OneRow&& row) {
  const Statement statement = prepare(database, sql);
  if (!statement) return false;
  int step = 0;
  while ((step = sqlite3_step(statement.get())) == SQLITE_ROW) row(statement.get());
  return step == SQLITE_DONE;
}

}  // namespace phlox::recording
