#include "phlox/base/private_folder.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <vector>

#include "phlox/base/folder.h"
#include "phlox/base/write_all.h"

namespace phlox {
namespace {

constexpr time_t kDay = 24 * 60 * 60;

struct Kept {
  time_t used;
  size_t size;
  std::string name;
};

// Every plain file in it, including those being written: the leftovers of a killed run are removed like the
// others.
std::vector<Kept> kept_in(DIR* folder) {
  std::vector<Kept> result;
  while (const dirent* entry = ::readdir(folder)) {
    struct stat status {};
    if (::fstatat(::dirfd(folder), entry->d_name, &status, AT_SYMLINK_NOFOLLOW) == 0 &&
        S_ISREG(status.st_mode))
      result.push_back({status.st_mtime, static_cast<size_t>(status.st_size), entry->d_name});
  }
  return result;
}

bool is_private_folder(const std::string& folder) {
  struct stat status {};
  return ::lstat(folder.c_str(), &status) == 0 && S_ISDIR(status.st_mode) && status.st_uid == ::geteuid() &&
         (status.st_mode & 022) == 0;
}

}  // namespace

bool make_private_folder(const std::string& folder) {
  if (folder.empty() || folder.front() != '/') return false;
  if (is_private_folder(folder)) return true;
  for (size_t at = folder.find('/', 1); at != std::string::npos; at = folder.find('/', at + 1)) {
    ::mkdir(folder.substr(0, at).c_str(), 0700);
  }
  ::mkdir(folder.c_str(), 0700);
  return is_private_folder(folder);
}

bool write_whole_file(const std::string& folder, const std::string& name, std::span<const std::byte> bytes) {
  std::string temporary = folder + "/new-XXXXXX";
  const Descriptor fd(::mkostemp(temporary.data(), O_CLOEXEC));
  if (!fd) return false;
  if (write_all(fd.get(), bytes) && ::rename(temporary.c_str(), (folder + "/" + name).c_str()) == 0)
    return true;
  ::unlink(temporary.c_str());
  return false;
}

void keep_within(const std::string& folder, size_t most) {
  const Folder listed =
      list_folder(Descriptor(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW)));
  if (!listed) return;
  std::vector<Kept> files = kept_in(listed.get());
  size_t total = 0;
  for (const Kept& file : files) total += file.size;
  std::sort(files.begin(), files.end(), [](const Kept& a, const Kept& b) { return a.used < b.used; });
  for (const Kept& file : files) {
    if (total <= most) break;
    if (::unlinkat(::dirfd(listed.get()), file.name.c_str(), 0) == 0) total -= file.size;
  }
}

Descriptor open_kept_file(const std::string& folder, const std::string& name, size_t largest) {
  Descriptor fd(::open((folder + "/" + name).c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  struct stat status {};
  if (!fd || ::fstat(fd.get(), &status) != 0 || !S_ISREG(status.st_mode) || status.st_uid != ::geteuid() ||
      static_cast<size_t>(status.st_size) > largest)
    return {};
  if (status.st_mtime + kDay < ::time(nullptr)) ::futimens(fd.get(), nullptr);
  return fd;
}

}  // namespace phlox
