// Whether the tables of a file are those of a recorder: columns that are stored, and nothing that SQLite
// would run or compute when they are read or written.
#pragma once

#include <sqlite3.h>

#include <string>
#include <string_view>

#include "phlox/base/result.h"

namespace phlox::recording {

// Call it first for a file that someone else may have written: switches off the dangerous features of SQLite,
// and caps the cost. `attached`: how many other files SQLite may open for us.
void distrust(sqlite3* database, int attached = 0);

// Refuses triggers, indexes, virtual tables, computed columns, and views other than a recorder's.
Result<void> check_schema(sqlite3* database, const std::string& path);

// "CREATE TABLE name (column TYPE PRIMARY KEY NOT NULL, ..., PRIMARY KEY (a, b)) WITHOUT ROWID": only this.
bool is_plain_table(std::string_view sql);

}  // namespace phlox::recording
