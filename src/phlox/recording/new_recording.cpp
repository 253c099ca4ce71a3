#include "phlox/recording/new_recording.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <span>

#include "phlox/base/new_file.h"
#include "phlox/base/place.h"
#include "phlox/base/write_all.h"
#include "phlox/recording/schema.h"

namespace phlox::recording {

tl::unexpected<Error> cannot_write(const std::string& path, std::string_view why) {
  return fail(ErrorKind::output, fmt::format("cannot write {}: {}", path, why),
              "choose another file with -o FILE; is there room? df -h");
}

tl::unexpected<Error> cannot_write(const std::string& path, int error) {
  return fail(ErrorKind::output, fmt::format("cannot write {}: {}", path, std::strerror(error)),
              error == ENOENT   ? "is the folder there?"
              : error == ENOSPC ? "is there room on the file system? df -h"
                                : "choose another file with -o FILE");
}

Result<Database> new_recording(const std::string& path) {
  Database database = open_database(":memory:", SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE);
  const std::string setup = fmt::format(
      "PRAGMA page_size=4096; PRAGMA application_id={}; PRAGMA user_version={}; {} {} {} {} {}; {}; {}; {} "
      "{}",
      kApplicationId, kSchemaVersion, kSchema, kViews, kAddTaskTimes, kAddTaskGroups, kAddTaskChanges,
      kAddTaskWaiters, kAddJobWaiters, kAddRequests, kAddTraceTimes);
  if (!run(database.get(), setup)) return cannot_write(path, sqlite3_errmsg(database.get()));
  return database;
}

Result<void> put_recording(sqlite3* in_memory, const std::string& path, const std::optional<Owner>& owner) {
  // The tables go into the file itself, not into the log, so that a copy without its "-wal" is still a
  // recording.
  sqlite3_int64 size = 0;
  const std::unique_ptr<unsigned char, void (*)(void*)> bytes(sqlite3_serialize(in_memory, "main", &size, 0),
                                                              sqlite3_free);
  if (!bytes) return cannot_write(path, sqlite3_errmsg(in_memory));
  const auto place = Place::find(path, owner);
  NewFile file = NewFile::make(path, owner);
  if (!place || !file) return cannot_write(path, errno);
  if (!write_all(file.descriptor(), std::as_bytes(std::span(bytes.get(), static_cast<size_t>(size)))))
    return cannot_write(path, errno);
  // After a power failure, too, one of the two exists.
  if (::fdatasync(file.descriptor()) != 0) return cannot_write(path, errno);
  // Leftovers of an interrupted recording of this name belong to that one, not to this one.
  for (const char* suffix : {"-wal", "-shm", "-journal"}) place->remove(place->name() + suffix);
  if (!file.put_in_place(0600, place->name() + "-new")) return cannot_write(path, errno);
  return {};
}

}  // namespace phlox::recording
