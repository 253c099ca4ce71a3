#include "phlox/recording/database.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string_view>

namespace phlox::recording {
namespace {

// Opens folders and regular files by the path that SQLite is given, without resolving links.
constexpr const char* kAsIs = "phlox-as-is";

bool is_side_file(std::string_view path) {
  return path.ends_with("-wal") || path.ends_with("-shm") || path.ends_with("-journal");
}

// Replaces SQLite's own open(): the file may come from someone else, and may change while it is checked.
int open_plain(const char* path, int flags, int mode) {
  const int file = ::open(path, flags | O_NONBLOCK, mode);
  if (file < 0 || std::strcmp(path, "/dev/urandom") == 0) return file;
  struct stat there {};
  const bool plain =
      ::fstat(file, &there) == 0 &&
      (S_ISDIR(there.st_mode) || (S_ISREG(there.st_mode) && (!is_side_file(path) || there.st_nlink < 2)));
  if (plain) return file;
  ::close(file);
  errno = EACCES;
  return -1;
}

// SQLite repeats an interrupted call without limit. We block signals: if interruptions do not stop, a failed
// call is better than a recorder that never ends.
template <class Call, class... Arguments>
auto bounded(Call call, Arguments... arguments) {
  constexpr int kMostInARow = 1000;
  thread_local int in_a_row = 0;
  const auto result = call(arguments...);
  if (result >= 0 || errno != EINTR) {
    in_a_row = 0;
  } else if (++in_a_row > kMostInARow) {
    errno = EIO;
  }
  return result;
}
ssize_t bounded_read(int file, void* to, size_t size) {
  return bounded(::read, file, to, size);
}
ssize_t bounded_pread(int file, void* to, size_t size, off_t offset) {
  return bounded(::pread, file, to, size, offset);
}
ssize_t bounded_write(int file, const void* from, size_t size) {
  return bounded(::write, file, from, size);
}
ssize_t bounded_pwrite(int file, const void* from, size_t size, off_t offset) {
  return bounded(::pwrite, file, from, size, offset);
}
int bounded_truncate(int file, off_t size) {
  return bounded(::ftruncate, file, size);
}

// Only calls that this SQLite was built with.
template <class Call>
void replace_call(sqlite3_vfs* system, const char* name, Call call) {
  if (system->xGetSystemCall(system, name) != nullptr)
    system->xSetSystemCall(system, name, reinterpret_cast<sqlite3_syscall_ptr>(call));
}

int copy_path(sqlite3_vfs*, const char* path, int size, char* to) {
  const size_t length = std::strlen(path);
  if (size <= 0 || length >= static_cast<size_t>(size)) return SQLITE_CANTOPEN;
  std::memcpy(to, path, length + 1);
  return SQLITE_OK;
}

// Once for each process, before it opens its first database.
void settle_sqlite() {
  static const bool done = [] {
    // SQLite's memory statistics are not used, and counting takes a lock at each allocation.
    sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
    sqlite3_initialize();
    sqlite3_vfs* const usual = sqlite3_vfs_find("unix");
    if (usual == nullptr) return false;
    replace_call(usual, "open", open_plain);
    replace_call(usual, "read", bounded_read);
    replace_call(usual, "write", bounded_write);
    replace_call(usual, "ftruncate", bounded_truncate);
    for (const char* name : {"pread", "pread64"}) replace_call(usual, name, bounded_pread);
    for (const char* name : {"pwrite", "pwrite64"}) replace_call(usual, name, bounded_pwrite);
    static sqlite3_vfs as_is = *usual;
    as_is.zName = kAsIs;
    as_is.pNext = nullptr;
    as_is.xFullPathname = copy_path;
    return sqlite3_vfs_register(&as_is, 0) == SQLITE_OK;
  }();
  (void)done;
}

Database open_by(const std::string& path, int flags, const char* vfs) {
  settle_sqlite();
  sqlite3* raw = nullptr;
  sqlite3_open_v2(path.c_str(), &raw, flags | SQLITE_OPEN_NOMUTEX, vfs);
  return Database(raw);
}

}  // namespace

Database open_database(const std::string& path, int flags) {
  return open_by(path, flags, nullptr);
}

Database open_database(const Place& place, int flags) {
  return open_database(place, place.name(), flags);
}

Database open_database(const Place& place, const std::string& name, int flags) {
  return open_by(place.path(name), flags, kAsIs);
}

Statement prepare(sqlite3* database, const std::string& sql) {
  sqlite3_stmt* raw = nullptr;
  sqlite3_prepare_v2(database, sql.c_str(), -1, &raw, nullptr);
  return Statement(raw);
}

bool run(sqlite3* database, const std::string& sql) {
  return sqlite3_exec(database, sql.c_str(), nullptr, nullptr, nullptr) == SQLITE_OK;
}

std::optional<int64_t> first_number(sqlite3* database, const std::string& sql) {
  const Statement statement = prepare(database, sql);
  if (!statement || sqlite3_step(statement.get()) != SQLITE_ROW ||
      sqlite3_column_type(statement.get(), 0) != SQLITE_INTEGER)
    return {};
  return sqlite3_column_int64(statement.get(), 0);
}

std::string text_of(sqlite3_stmt* row, int column) {
  const auto* bytes = reinterpret_cast<const char*>(sqlite3_column_text(row, column));
  if (bytes == nullptr) return {};
  return {bytes, static_cast<size_t>(sqlite3_column_bytes(row, column))};
}

}  // namespace phlox::recording
