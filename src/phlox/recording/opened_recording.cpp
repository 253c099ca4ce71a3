#include "phlox/recording/opened_recording.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <utility>
#include <vector>

#include "phlox/base/descriptor.h"
#include "phlox/recording/reader.h"
#include "phlox/recording/schema.h"
#include "phlox/recording/schema_check.h"

namespace phlox::recording {
namespace {

Result<int64_t> pragma(sqlite3* database, const std::string& path, const char* name) {
  const Statement statement = prepare(database, fmt::format("PRAGMA {}", name));
  const int step = statement ? sqlite3_step(statement.get()) : sqlite3_errcode(database);
  if (step == SQLITE_ROW) return sqlite3_column_int64(statement.get(), 0);
  if (step == SQLITE_NOTADB) return fail(ErrorKind::input, fmt::format("{} is not a phlox recording", path));
  if (step == SQLITE_CANTOPEN || step == SQLITE_READONLY || sqlite3_errcode(database) == SQLITE_CANTOPEN) {
    return fail(
        ErrorKind::input, fmt::format("cannot open {}: {}", path, sqlite3_errmsg(database)),
        "a recording that was cut off needs a folder that can be written: copy it with its -wal file");
  }
  return damaged(path, sqlite3_errmsg(database));
}

constexpr std::string_view kTables[] = {"meta",  "process", "thread", "module", "frame",
                                        "stack", "state",   "sample", "event"};
// Tables newer than format 1, which a recording may lack.
struct OptionalTable {
  std::string_view name;
  bool OptionalTables::*is_there;
};

// Whether a rollback journal is for this file alone. Applying one that names a super-journal at its end
// (SQLite's pager.c: readSuperJournal) would remove the named file, whichever it is.
bool is_trusted_journal(const std::string& path) {
  constexpr std::string_view kSuper("\xd9\xd5\x05\xf9\x20\xa1\x63\xd7", 8);
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW));
  struct stat there {};
  char end[kSuper.size()];
  return file && ::fstat(file.get(), &there) == 0 && S_ISREG(there.st_mode) &&
         ::pread(file.get(), end, sizeof end, there.st_size - static_cast<off_t>(sizeof end)) == sizeof end &&
         std::string_view(end, sizeof end) != kSuper;
}

// A recorder killed while it began or ended the log leaves a rollback journal, which a reader may not apply
// (SQLITE_READONLY_ROLLBACK). A live recorder holds the lock: then nothing happens.
void undo_half_written(const std::string& path) {
  if (!is_trusted_journal(path + "-journal")) return;
  const Database database = open_database(path, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOFOLLOW);
  if (sqlite3_errcode(database.get()) != SQLITE_OK) return;
  distrust(database.get());
  run(database.get(), "PRAGMA user_version");
}

bool has_nothing(sqlite3* database) {
  const Statement statement = prepare(database, "SELECT 1 FROM sqlite_schema");
  return statement && sqlite3_step(statement.get()) == SQLITE_DONE;
}

// False if there is no table of that name.
Result<bool> is_there(sqlite3* database, sqlite3_stmt* asking, const std::string& path,
                      std::string_view table) {
  sqlite3_reset(asking);
  sqlite3_bind_text(asking, 1, table.data(), static_cast<int>(table.size()), SQLITE_STATIC);
  const int step = sqlite3_step(asking);
  if (step == SQLITE_DONE) return false;
  if (step != SQLITE_ROW) return damaged(path, sqlite3_errmsg(database));
  return true;
}

// Returns which of the optional tables exist.
Result<OptionalTables> check_tables(sqlite3* database, const std::string& path, const Names& names) {
  if (auto plain = check_schema(database, path); !plain) return fail(plain);
  const Statement statement =
      prepare(database, "SELECT 1 FROM sqlite_schema WHERE name = ? AND type = 'table'");
  if (!statement) return damaged(path, sqlite3_errmsg(database));
  std::vector<std::string_view> needed(std::begin(kTables), std::end(kTables));
  needed.push_back(names.counters);
  for (const std::string_view table : needed) {
    const auto there = is_there(database, statement.get(), path, table);
    if (!there) return fail(there);
    if (*there) continue;
    if (table == "meta" && has_nothing(database)) return holds_nothing(path);
    return fail(ErrorKind::input, fmt::format("{} has no table {}", path, table),
                fmt::format("a recording that was cut off is two files: copy {}-wal too", path));
  }
  OptionalTables tables;
  for (const OptionalTable& table : {OptionalTable{"missing_names", &OptionalTables::missing_names},
                                     {"label", &OptionalTables::label},
                                     {"trace_time", &OptionalTables::trace_time},
                                     {names.wakers, &OptionalTables::waker},
                                     {names.wait_targets, &OptionalTables::wait_targets}}) {
    const auto there = is_there(database, statement.get(), path, table.name);
    if (!there) return fail(there);
    tables.*table.is_there = *there;
  }
  return tables;
}

}  // namespace

void fold_log(const Place& place) {
  constexpr off_t kLargest = off_t{1} << 28;  // a recorder's log is 4 MiB and one commit
  const ActAs as = place.rights();
  struct stat log {};
  (void)::lstat(place.path(place.name() + "-wal").c_str(), &log);
  const std::string journal = place.path(place.name() + "-journal");
  const bool has_journal = ::access(journal.c_str(), F_OK) == 0;
  if (!is_recording(place.path()) || (has_journal && !is_trusted_journal(journal)) || log.st_size > kLargest)
    return;
  const Database database = open_database(place, SQLITE_OPEN_READWRITE);
  if (sqlite3_errcode(database.get()) != SQLITE_OK) return;
  distrust(database.get());
  // Reading rolls back an interrupted commit.
  run(database.get(), "PRAGMA user_version; PRAGMA journal_mode=DELETE");
}

tl::unexpected<Error> damaged(const std::string& path, std::string_view what) {
  return fail(ErrorKind::input, fmt::format("{} is damaged: {}", path, what),
              "sqlite3 FILE .recover may save a part of it");
}

tl::unexpected<Error> holds_nothing(const std::string& path) {
  return fail(
      ErrorKind::input,
      fmt::format("{} holds nothing: it has just begun, or its recorder was killed in its first moments",
                  path),
      fmt::format("if it is a copy of an unfinished recording, copy {}-wal too", path));
}

Result<OpenedRecording> open_recording(const std::string& path) {
  undo_half_written(path);
  Database database = open_database(path, SQLITE_OPEN_READONLY);
  sqlite3* const raw = database.get();
  if (sqlite3_errcode(raw) != SQLITE_OK) {
    const int error = raw != nullptr ? sqlite3_system_errno(raw) : ENOMEM;
    return fail(
        ErrorKind::input,
        fmt::format("cannot open {}: {}", path, error != 0 ? std::strerror(error) : sqlite3_errmsg(raw)),
        fmt::format("is it yours to read? ls -l {}", path));
  }
  distrust(raw);
  sqlite3_busy_timeout(raw, 2000);
  // One consistent state of a file that may be growing.
  run(raw, "PRAGMA trusted_schema=OFF; PRAGMA cell_size_check=ON; PRAGMA mmap_size=0; BEGIN");
  const auto application = pragma(raw, path, "application_id");
  if (!application) return fail(application);
  if (*application != kApplicationId) {
    return fail(ErrorKind::input, fmt::format("{} is an SQLite file, but not a phlox recording", path));
  }
  const auto version = pragma(raw, path, "user_version");
  if (!version) return fail(version);
  if (*version > kSchemaVersion) {
    return fail(ErrorKind::input,
                fmt::format("{} was recorded by a newer phlox: its format is {}, this one reads {}", path,
                            *version, kSchemaVersion),
                "pip install --upgrade phlox");
  }
  if (*version < 1) return damaged(path, fmt::format("format {}", *version));
  const Names& names = *version < 3 ? kNamesBefore3 : kNames;
  const auto tables = check_tables(raw, path, names);
  if (!tables) return fail(tables);
  return OpenedRecording{std::move(database), *tables, names};
}

}  // namespace phlox::recording
