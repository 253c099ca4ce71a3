#include "phlox/recording/snapshot.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sqlite3.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "phlox/base/clock.h"
#include "phlox/base/place.h"
#include "phlox/profile/kept.h"
#include "phlox/profile/model.h"
#include "phlox/recording/database.h"
#include "phlox/recording/new_recording.h"
#include "phlox/recording/schema_check.h"

namespace phlox::recording {
namespace {

// A file next to its final place until it is complete.
class Draft {
 public:
  explicit Draft(const Place& place)
      : place_(place),
        name_(fmt::format("{}.{}-{:x}", place.name(), ::getpid(), clock_now())),
        file_(place.open(name_, O_RDWR | O_CREAT | O_EXCL, 0600)) {}
  ~Draft() {
    if (file_) place_.remove(name_);
  }
  Draft(const Draft&) = delete;
  Draft& operator=(const Draft&) = delete;
  bool made() const { return bool(file_); }
  const std::string& name() const { return name_; }
  bool put_in_place() {
    if (!place_.give(file_.get()) || !place_.rename(name_, place_.name())) return false;
    file_.close();
    return true;
  }

 private:
  const Place& place_;
  std::string name_;
  Descriptor file_;  // SQLite writes into the same file
};

std::string quoted(const std::string& text) {
  const std::unique_ptr<char, void (*)(void*)> sql(sqlite3_mprintf("%Q", text.c_str()), sqlite3_free);
  return sql.get();
}

// Ends the copy where its recorder was: at the last moment that any thread was seen.
std::string ending(const std::string& from) {
  return fmt::format(
      "BEGIN;"
      "CREATE TEMP TABLE last AS SELECT coalesce("
      "  (SELECT CAST(value AS INTEGER) FROM meta WHERE key = 'sample_epoch_ns') +"
      "    (SELECT max(start_us * 1000 + wall_ns) FROM sample),"
      "  (SELECT CAST(value AS INTEGER) FROM meta WHERE key = 'start_monotonic_ns')) AS ns;"
      "UPDATE process SET end_ns = (SELECT ns FROM last), how_ended = 'snapshot' WHERE end_ns = 0;"
      "INSERT INTO event SELECT NULL, {}, ns, NULL, NULL, 0, 'snapshot' FROM last;"
      "INSERT OR IGNORE INTO meta SELECT 'end_monotonic_ns', CAST(ns AS TEXT) FROM last;"
      "INSERT OR REPLACE INTO meta VALUES ('snapshot_of', {});"
      "COMMIT",
      static_cast<int>(profile::EventKind::recording_end), quoted(from));
}

// Deletes what is not in the part. The copy has an end.
std::string cutting(const Part& part) {
  std::string sql = fmt::format(
      "PRAGMA journal_mode = MEMORY; PRAGMA temp_store = MEMORY;"
      "BEGIN;"
      "CREATE TEMP TABLE epoch AS SELECT coalesce("
      "  (SELECT CAST(value AS INTEGER) FROM meta WHERE key = 'sample_epoch_ns'), 0) AS ns;"
      "DELETE FROM sample WHERE start_us * 1000 + wall_ns <= {0} - (SELECT ns FROM epoch)"
      "  OR start_us * 1000 >= {1} - (SELECT ns FROM epoch);"
      "CREATE TEMP TABLE was AS SELECT"
      "  (SELECT CAST(value AS INTEGER) FROM meta WHERE key = 'start_monotonic_ns') AS begin,"
      "  (SELECT CAST(value AS INTEGER) FROM meta WHERE key = 'end_monotonic_ns') AS end;"
      // Rows are up to a second long, and some begin or end slightly beyond it.
      "CREATE TEMP TABLE is_now AS SELECT"
      "  max(begin, min({0}, coalesce((SELECT ns + min(start_us) * 1000 FROM sample, epoch), {0}))) AS begin,"
      "  min(end, max({1}, coalesce((SELECT ns + max(start_us * 1000 + wall_ns) FROM sample, epoch), {1})))"
      "    AS end FROM was;"
      "UPDATE meta SET value = CAST(value + (SELECT is_now.begin - was.begin FROM is_now, was) AS TEXT)"
      "  WHERE key IN ('start_monotonic_ns', 'start_unix_ns');"
      "UPDATE meta SET value = CAST((SELECT end FROM is_now) AS TEXT) WHERE key = 'end_monotonic_ns';"
      "DELETE FROM event WHERE kind NOT IN ({2}, {3})"
      "  AND time_ns NOT BETWEEN (SELECT begin FROM is_now) AND (SELECT end FROM is_now);"
      "UPDATE event SET time_ns = (SELECT begin FROM is_now) WHERE kind = {2};"
      "UPDATE event SET time_ns = (SELECT end FROM is_now) WHERE kind = {3};"
      // Their ids count without a gap.
      "CREATE TEMP TABLE stay AS SELECT * FROM event; DELETE FROM event;"
      "INSERT INTO event SELECT NULL, kind, time_ns, process, thread, value, text FROM stay ORDER BY id;"
      "DELETE FROM meta WHERE key = '{4}';",
      part.from, part.to, static_cast<int>(profile::EventKind::recording_start),
      static_cast<int>(profile::EventKind::recording_end), profile::kLetGo);
  for (const auto& [key, value] : part.meta)
    sql += fmt::format("INSERT OR REPLACE INTO meta VALUES ({}, {});", quoted(key), quoted(value));
  return sql;
}

// Recordings of older versions lack some of them.
constexpr std::string_view kTaskTables[] = {"task_census", "event_loop",  "task_stack",  "task_time",
                                            "task_group",  "ready_tasks", "task_waiter", "job_waiter",
                                            "request",     "request_part"};

bool has_table(sqlite3* copy, std::string_view name) {
  return first_number(copy,
                      fmt::format("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = '{}'", name))
      .has_value();
}

bool cut(sqlite3* copy, const Part& part) {
  if (!run(copy, cutting(part))) return false;
  for (const std::string_view table : kTaskTables)
    if (has_table(copy, table) && !run(copy, fmt::format("DELETE FROM {}", table))) return false;
  if (has_table(copy, "trace_time") &&
      !run(copy,
           "DELETE FROM trace_time WHERE end_ns <= (SELECT begin FROM is_now)"
           "  OR start_ns >= (SELECT end FROM is_now)"))
    return false;
  return run(copy, "COMMIT; VACUUM");
}

bool says(sqlite3* database, std::string_view key) {
  return first_number(database, fmt::format("SELECT 1 FROM meta WHERE key = '{}'", key)).has_value();
}

// A file's path with its links resolved. The copy is opened by the path that SQLite is given.
std::string real_path(const std::string& path) {
  const std::unique_ptr<char, void (*)(void*)> real(::realpath(path.c_str(), nullptr), std::free);
  return real ? real.get() : path;
}

// Copies one consistent state, compacted: in write-ahead mode a reader blocks no one.
Result<void> copy_into(const std::string& from, const std::string& to, const Place& place,
                       const std::string& name) {
  const auto source_place = Place::find(real_path(from));
  if (!source_place)
    return fail(ErrorKind::input, fmt::format("cannot open {}: {}", from, std::strerror(errno)));
  const Database source = open_database(*source_place, SQLITE_OPEN_READONLY);
  distrust(source.get(), 1);
  sqlite3_busy_timeout(source.get(), 2000);
  if (auto plain = check_schema(source.get(), from); !plain) return plain;
  const ActAs as = place.rights();
  if (!run(source.get(), "VACUUM INTO " + quoted(place.path(name))))
    return cannot_write(to, fmt::format("a copy of {}: {}", from, sqlite3_errmsg(source.get())));
  return {};
}

}  // namespace

Result<void> snapshot(const std::string& from, const std::string& to, std::optional<Owner> owner,
                      const std::optional<Part>& part) {
  if (auto possible = Writer::check(to, owner); !possible) return possible;
  const auto place = Place::find(to, owner);
  if (!place) return cannot_write(to, errno);
  Draft draft(*place);
  if (!draft.made()) return cannot_write(to, errno);
  if (auto copied = copy_into(from, to, *place, draft.name()); !copied) return copied;
  {
    const ActAs as = place->rights();
    const Database copy = open_database(*place, draft.name(), SQLITE_OPEN_READWRITE);
    distrust(copy.get(), 1);
    // Makes sure that the copied file was not another one.
    if (auto plain = check_schema(copy.get(), from); !plain) return plain;
    if (!says(copy.get(), "end_monotonic_ns") && !says(copy.get(), "start_monotonic_ns"))
      return fail(ErrorKind::input, fmt::format("{} holds nothing yet", from), "try again in a moment");
    if (!says(copy.get(), "end_monotonic_ns") && !run(copy.get(), ending(from)))
      return cannot_write(to, sqlite3_errmsg(copy.get()));
    if (part && !cut(copy.get(), *part)) return cannot_write(to, sqlite3_errmsg(copy.get()));
  }
  if (!draft.put_in_place()) return cannot_write(to, errno);
  return {};
}

}  // namespace phlox::recording
