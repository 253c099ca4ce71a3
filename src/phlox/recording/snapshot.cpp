#include "phlox/recording/snapshot.h"

#include <fmt/format.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <memory>

#include "phlox/profile/model.h"
#include "phlox/recording/database.h"
#include "phlox/recording/new_recording.h"

namespace phlox::recording {
namespace {

// A file beside its place until it is whole.
class Draft {
 public:
  explicit Draft(const std::string& place) : path_(place + ".XXXXXX") {
    const int file = ::mkstemp(path_.data());  // mode 0600
    made_ = file >= 0;
    if (made_) ::close(file);
  }
  ~Draft() {
    if (made_) ::unlink(path_.c_str());
  }
  Draft(const Draft&) = delete;
  Draft& operator=(const Draft&) = delete;
  bool made() const { return made_; }
  const std::string& path() const { return path_; }
  bool put_in_place(const std::string& place) {
    if (::rename(path_.c_str(), place.c_str()) != 0) return false;
    made_ = false;
    return true;
  }

 private:
  std::string path_;
  bool made_ = false;
};

std::string quoted(const std::string& text) {
  const std::unique_ptr<char, void (*)(void*)> sql(sqlite3_mprintf("%Q", text.c_str()), sqlite3_free);
  return sql.get();
}

// Ends it where its recorder was: at the last moment that any thread was seen.
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

bool says(sqlite3* database, std::string_view key) {
  return first_number(database, fmt::format("SELECT 1 FROM meta WHERE key = '{}'", key)).has_value();
}

}  // namespace

Result<void> snapshot(const std::string& from, const std::string& to, std::optional<Owner> owner) {
  if (auto possible = Writer::check(to); !possible) return possible;
  Draft draft(to);
  if (!draft.made()) return cannot_write(to, errno);
  {
    const Database source = open_database(from, SQLITE_OPEN_READONLY);
    sqlite3_busy_timeout(source.get(), 2000);
    // One moment of it, packed: in write-ahead mode a reader is in nobody's way.
    if (!run(source.get(), "VACUUM INTO " + quoted(draft.path())))
      return cannot_write(to, fmt::format("a copy of {}: {}", from, sqlite3_errmsg(source.get())));
  }
  {
    const Database copy = open_database(draft.path(), SQLITE_OPEN_READWRITE);
    if (!says(copy.get(), "end_monotonic_ns") && !says(copy.get(), "start_monotonic_ns"))
      return fail(ErrorKind::input, fmt::format("{} holds nothing yet", from), "again in a moment");
    if (!says(copy.get(), "end_monotonic_ns") && !run(copy.get(), ending(from)))
      return cannot_write(to, sqlite3_errmsg(copy.get()));
  }
  if (owner && ::chown(draft.path().c_str(), owner->user, owner->group) != 0) return cannot_write(to, errno);
  if (!draft.put_in_place(to)) return cannot_write(to, errno);
  return {};
}

}  // namespace phlox::recording
