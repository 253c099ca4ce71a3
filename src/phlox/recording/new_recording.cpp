#include "phlox/recording/new_recording.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <span>

#include "phlox/base/new_file.h"
#include "phlox/base/place.h"
#include "phlox/base/write_all.h"
#include "phlox/recording/database.h"
#include "phlox/recording/schema.h"

namespace phlox::recording {
namespace {

// Its bytes.
Result<std::string> empty_recording(const std::string& path) {
  const Database database = open_database(":memory:", SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE);
  const std::string setup =
      fmt::format("PRAGMA page_size=4096; PRAGMA application_id={}; PRAGMA user_version={}; {}",
                  kApplicationId, kSchemaVersion, kSchema);
  sqlite3_int64 size = 0;
  unsigned char* bytes = nullptr;
  if (run(database.get(), setup)) bytes = sqlite3_serialize(database.get(), "main", &size, 0);
  if (bytes == nullptr) return cannot_write(path, sqlite3_errmsg(database.get()));
  std::string image(reinterpret_cast<char*>(bytes), static_cast<size_t>(size));
  sqlite3_free(bytes);
  return image;
}

}  // namespace

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

Result<void> put_empty_recording(const std::string& path, std::optional<Owner> owner) {
  // The tables go into the file itself, not into the log, so that a copy made without its "-wal" is an empty
  // recording rather than a riddle.
  const auto image = empty_recording(path);
  if (!image) return fail(image);
  const auto place = Place::find(path, owner);
  NewFile file = NewFile::make(path, owner);
  if (!place || !file) return cannot_write(path, errno);
  if (!write_all(file.descriptor(), std::as_bytes(std::span(*image)))) return cannot_write(path, errno);
  // Leftovers of a recording of that name that was cut off belong to it, not to this one.
  for (const char* suffix : {"-wal", "-shm", "-journal"}) place->remove(place->name() + suffix);
  if (!file.put_in_place(0600)) return cannot_write(path, errno);
  return {};
}

}  // namespace phlox::recording
