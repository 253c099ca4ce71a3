// SQLite's handles as objects, and functions of several files of this directory. Whether to trust the
// contents of a file is decided elsewhere (opened_recording.h).
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

// For one thread. sqlite3_errcode() says whether it could be opened; none if there is no memory. Opens only a
// regular file, never through a link, and of the files next to a recording none that also has another name: a
// pipe would block us, and a link could lead out of the folder.
Database open_database(const std::string& path, int flags);
// The same for a file of this folder, even if the path to it changes.
Database open_database(const Place& place, int flags);
// Another file of the folder.
Database open_database(const Place& place, const std::string& name, int flags);

// None: it cannot be run; sqlite3_errmsg() says why.
Statement prepare(sqlite3* database, const std::string& sql);
// Statements without rows; false: one failed.
bool run(sqlite3* database, const std::string& sql);
// The first column of the first row; none if that is no integer, or the query fails.
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
