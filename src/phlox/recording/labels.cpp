#include "phlox/recording/labels.h"

#include <fmt/format.h>
#include <sqlite3.h>

#include "phlox/recording/schema.h"

namespace phlox::recording {

Result<void> add_labels(const std::string& path, const std::vector<profile::TimeLabel>& labels) {
  sqlite3* database = nullptr;
  const int opened = sqlite3_open_v2(
      path.c_str(), &database, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_NOFOLLOW, nullptr);
  sqlite3_stmt* row = nullptr;
  const auto done = [&](int status) {
    const std::string why = database != nullptr ? sqlite3_errmsg(database) : "no memory";
    sqlite3_finalize(row);
    if (database != nullptr) sqlite3_exec(database, "ROLLBACK", nullptr, nullptr, nullptr);
    sqlite3_close(database);
    return status == SQLITE_OK
               ? Result<void>()
               : Result<void>(fail(ErrorKind::output, fmt::format("cannot write {}: {}", path, why),
                                   "is it yours to write? ls -l FILE"));
  };
  if (opened != SQLITE_OK) return done(opened);
  sqlite3_busy_timeout(database, 2000);
  int status =
      sqlite3_exec(database, "PRAGMA trusted_schema=OFF; BEGIN IMMEDIATE", nullptr, nullptr, nullptr);
  if (status == SQLITE_OK) status = sqlite3_exec(database, kLabelTable, nullptr, nullptr, nullptr);
  if (status == SQLITE_OK) {
    status = sqlite3_prepare_v2(database, "INSERT INTO label (start_ns, end_ns, text) VALUES (?, ?, ?)", -1,
                                &row, nullptr);
  }
  for (const profile::TimeLabel& label : labels) {
    if (status != SQLITE_OK) break;
    sqlite3_reset(row);
    sqlite3_bind_int64(row, 1, label.start);
    sqlite3_bind_int64(row, 2, label.end);
    sqlite3_bind_text(row, 3, label.text.data(), static_cast<int>(label.text.size()), SQLITE_STATIC);
    if (sqlite3_step(row) != SQLITE_DONE) status = sqlite3_errcode(database);
  }
  if (status != SQLITE_OK) return done(status);
  sqlite3_finalize(row);
  row = nullptr;
  status = sqlite3_exec(database, "COMMIT", nullptr, nullptr, nullptr);
  return done(status);
}

}  // namespace phlox::recording
