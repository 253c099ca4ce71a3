#include "phlox/recording/labels.h"

#include <fmt/format.h>

#include "phlox/recording/database.h"
#include "phlox/recording/schema.h"
#include "phlox/recording/schema_check.h"

namespace phlox::recording {
namespace {

// False: SQLite says why. Closing the database undoes what was not committed.
bool put_labels(sqlite3* database, const std::vector<profile::TimeLabel>& labels) {
  if (!run(database, "PRAGMA trusted_schema=OFF; BEGIN IMMEDIATE") || !run(database, kLabelTable))
    return false;
  {
    const Statement row = prepare(database, "INSERT INTO label (start_ns, end_ns, text) VALUES (?, ?, ?)");
    if (!row) return false;
    for (const profile::TimeLabel& label : labels) {
      sqlite3_reset(row.get());
      sqlite3_bind_int64(row.get(), 1, label.start);
      sqlite3_bind_int64(row.get(), 2, label.end);
      sqlite3_bind_text(row.get(), 3, label.text.data(), static_cast<int>(label.text.size()), SQLITE_STATIC);
      if (sqlite3_step(row.get()) != SQLITE_DONE) return false;
    }
  }
  return run(database, "COMMIT");
}

}  // namespace

Result<void> add_labels(const std::string& path, const std::vector<profile::TimeLabel>& labels) {
  const Database database = open_database(path, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOFOLLOW);
  if (sqlite3_errcode(database.get()) == SQLITE_OK) {
    distrust(database.get());
    sqlite3_busy_timeout(database.get(), 2000);
    if (auto plain = check_schema(database.get(), path); !plain) return plain;
    if (put_labels(database.get(), labels)) return {};
  }
  return fail(ErrorKind::output, fmt::format("cannot write {}: {}", path, sqlite3_errmsg(database.get())),
              "is it yours to write? ls -l FILE");
}

}  // namespace phlox::recording
