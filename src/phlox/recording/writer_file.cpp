// A writer's file: how it is created, put in place, and finished.
#include <fcntl.h>
#include <fmt/format.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "phlox/base/new_file.h"
#include "phlox/recording/database.h"
#include "phlox/recording/opened_recording.h"
#include "phlox/recording/recorder_mark.h"
#include "phlox/recording/whereabouts.h"
#include "phlox/recording/writer.h"

namespace phlox::recording {
namespace {

// `verb`: what cannot be done otherwise.
Result<void> not_in_use(const Place& place, const std::string& path, bool has_recorder,
                        std::string_view verb) {
  const auto user = user_of(place);
  if (!user && !has_recorder) return {};
  return fail(ErrorKind::output,
              fmt::format("cannot {} {}: {}", verb, path,
                          user ? fmt::format("process {} is using it", *user)
                               : std::string("another recorder is writing it")),
              "choose another file with -o FILE");
}

std::optional<struct stat> status_of(const Place& place, const std::string& name) {
  struct stat there {};
  const ActAs as = place.rights();
  if (::fstatat(place.folder(), name.c_str(), &there, AT_SYMLINK_NOFOLLOW) != 0) return {};
  return there;
}

// Creates a file with just the tables, complete from its first moment.
Result<void> put_empty_recording(const std::string& path, const std::optional<Owner>& owner) {
  const auto empty = new_recording(path);
  if (!empty) return fail(empty);
  return put_recording(empty->get(), path, owner);
}

}  // namespace

Result<void> Writer::check(const std::string& path, const std::optional<Owner>& owner,
                           std::string_view verb) {
  const auto place = Place::find(path, owner);
  if (!place) return cannot_write(path, errno);
  if (const auto there = status_of(*place, place->name()); there && !S_ISREG(there->st_mode))
    return fail(ErrorKind::output, fmt::format("cannot write {}: it exists and is not a regular file", path));
  if (auto free = not_in_use(*place, path, has_recorder(*place), verb); !free) return free;
  if (!NewFile::make(path, owner)) return cannot_write(path, errno);
  return {};
}

// at_each_commit: the log is folded in every 4 MiB; synchronous=NORMAL survives a killed process, and loses
// at most the last commits in a power failure. at_finish: no log, and one transaction.
Result<void> Writer::set_up() {
  const char* setup = safe_ == Safe::at_each_commit
                          ? "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; "
                            "PRAGMA wal_autocheckpoint=1000; PRAGMA journal_size_limit=4194304; "
                            "PRAGMA cache_size=-2000; PRAGMA temp_store=MEMORY;"
                          : "PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; PRAGMA locking_mode=EXCLUSIVE; "
                            "PRAGMA cache_size=-8000; PRAGMA temp_store=MEMORY;";
  char* message = nullptr;
  if (sqlite3_exec(database_, setup, nullptr, nullptr, &message) == SQLITE_OK) return {};
  const std::string why = message != nullptr ? message : "unknown";
  sqlite3_free(message);
  return fail(ErrorKind::output, fmt::format("cannot write {}: {}", path_, why),
              "is there room on the file system? df -h");
}

Result<std::unique_ptr<Writer>> Writer::create(const std::string& path, std::optional<Owner> owner,
                                               Safe safe) {
  const auto place = Place::find(path, owner);
  if (!place) return cannot_write(path, errno);
  const Descriptor folder = lock_folder(*place);
  if (auto possible = check(path, owner); !possible) return fail(possible);
  std::unique_ptr<Writer> writer(new Writer());
  writer->safe_ = safe;
  if (safe == Safe::at_each_commit && status_of(*place, place->name())) {
    fold_log(*place);
    if (auto begun = writer->open_in_memory(path, owner); !begun) return fail(begun);
  } else {
    if (auto begun = put_empty_recording(path, owner); !begun) return fail(begun);
    if (auto opened = writer->open(path, owner); !opened) return fail(opened);
  }
  // Here SQLite creates the log and its index, and gives them to the recording's owner.
  const ActAs as = writer->place_->rights();
  if (auto ready = writer->prepare_statements(); !ready) return fail(ready);
  return writer;
}

// An existing file stays until there is a sample.
Result<void> Writer::open_in_memory(const std::string& path, const std::optional<Owner>& owner) {
  path_ = path;
  owner_ = owner;
  place_ = Place::find(path, owner);
  if (!place_) return cannot_write(path, errno);
  mark_ = mark_as_replaced(*place_);
  auto database = new_recording(path);
  if (!database) return fail(database);
  database_ = database->release();
  return {};
}

Result<void> Writer::open(const std::string& path, const std::optional<Owner>& owner) {
  path_ = path;
  owner_ = owner;
  place_ = Place::find(path, owner);
  if (!place_) return cannot_write(path, errno);
  const ActAs as = place_->rights();
  if (!as) return cannot_write(path, errno);
  // Opened before SQLite opens the file, and closed after that: closing any descriptor of a file drops
  // SQLite's locks.
  if (!mark_) mark_ = mark_as_growing(*place_);
  database_ = open_database(*place_, SQLITE_OPEN_READWRITE).release();
  if (sqlite3_errcode(database_) != SQLITE_OK) {
    return fail(ErrorKind::output, fmt::format("cannot write {}: {}", path, sqlite3_errmsg(database_)));
  }
  has_file_ = true;
  // When appending to a file, nothing in it is run.
  for (const auto& [what, value] : {std::pair(SQLITE_DBCONFIG_DEFENSIVE, 1),
                                    {SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0},
                                    {SQLITE_DBCONFIG_ENABLE_TRIGGER, 0}})
    sqlite3_db_config(database_, what, value, nullptr);
  // A reader of the growing file must not block us for long.
  sqlite3_busy_timeout(database_, 2000);
  return set_up();
}

// Moves the recording from memory into its file. A writer that has started there meanwhile keeps the place.
Result<void> Writer::put_in_place() {
  const Descriptor folder = lock_folder(*place_);
  const bool has_recorder = is_marked(place_->open(place_->name(), O_RDWR));
  if (auto free = not_in_use(*place_, path_, has_recorder, "replace"); !free) return free;
  finalize_statements();
  if (auto put = put_recording(database_, path_, owner_); !put) return put;
  sqlite3_close(std::exchange(database_, nullptr));
  const Descriptor replaced = std::move(mark_);  // marked until the new file is
  if (auto opened = open(path_, owner_); !opened) return opened;
  const ActAs as = place_->rights();
  return prepare_statements();
}

void Writer::note_side_files() {
  side_files_.clear();
  number("PRAGMA user_version");  // SQLite opens its log with the first read
  for (const char* suffix : {"-wal", "-shm"}) {
    const std::string name = place_->name() + suffix;
    if (const auto there = status_of(*place_, name))
      side_files_.emplace_back(name, std::pair(there->st_dev, there->st_ino));
  }
}

// Fails if the name leads elsewhere: rows would no longer go where they should.
Result<void> Writer::check_place() const {
  if (!has_file_ || is_in_place(mark_, *place_)) return {};
  const bool replaced = status_of(*place_, place_->name()).has_value();
  if (is_removed(mark_)) {
    return fail(ErrorKind::output, fmt::format("{} was {} while it was recorded: what was recorded is lost",
                                               path_, replaced ? "replaced by another file" : "removed"));
  }
  const std::string now = path_of(mark_, path_);
  return fail(ErrorKind::output, fmt::format("{} was renamed {}while it was recorded", path_,
                                             now.empty() ? "" : fmt::format("to {} ", now)));
}

// Makes it one file. SQLite removes its log by the original name: for a renamed file, the log is folded in
// first, and removed only if it is still this file's.
int Writer::fold() {
  const ActAs as = place_->rights();
  if (is_in_place(mark_, *place_)) {
    const int folded = sqlite3_exec(database_, "PRAGMA journal_mode=DELETE", nullptr, nullptr, nullptr);
    if (folded != SQLITE_OK) note_error();
    sqlite3_close(std::exchange(database_, nullptr));
    return folded;
  }
  const int folded = sqlite3_exec(database_, "PRAGMA wal_checkpoint(TRUNCATE)", nullptr, nullptr, nullptr);
  if (folded != SQLITE_OK) note_error();
  sqlite3_close(std::exchange(database_, nullptr));
  for (const auto& [name, identity] : side_files_) {
    const auto there = status_of(*place_, name);
    if (there && there->st_dev == identity.first && there->st_ino == identity.second) place_->remove(name);
  }
  const auto now = Place::find(where_, owner_);
  if (where_.empty() || !now) return folded;
  fold_log(*now);
  return folded;
}

Result<void> Writer::finish() {
  auto committed = commit_rows();
  finalize_statements();
  if (!has_file_) {
    // Without any sample, the existing file is worth more.
    sqlite3_close(std::exchange(database_, nullptr));
    mark_.close();
    return committed;
  }
  const Result<void> stayed = check_place();
  where_ = is_removed(mark_) ? std::string() : path_of(mark_, path_);
  // If this fails, the log stays and can still be read.
  const int folded = fold();
  if (committed && (folded == SQLITE_BUSY || folded == SQLITE_LOCKED)) {
    error_.message = fmt::format("another program is reading {}: {}-wal stays beside it", path_, path_);
    error_.hint = "nothing is lost; keep the two files together";
  }
  mark_.close();
  if (!committed) return committed;
  if (!stayed) return stayed;
  if (folded != SQLITE_OK) return tl::unexpected<Error>(error_);
  return {};
}

Writer::~Writer() {
  finalize_statements();
  const ActAs as(place_ ? place_->rights_of() : std::optional<FileUser>());
  sqlite3_close(database_);
}

}  // namespace phlox::recording
