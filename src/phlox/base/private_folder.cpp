#include "phlox/base/private_folder.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>

#include "phlox/base/descriptor.h"

namespace phlox {
namespace {

bool write_all(int fd, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(fd, bytes.data(), bytes.size());
    if (n <= 0) return false;
    bytes = bytes.subspan(static_cast<size_t>(n));
  }
  return true;
}

}  // namespace

bool make_private_folder(const std::string& folder) {
  if (folder.empty() || folder.front() != '/') return false;
  for (size_t at = folder.find('/', 1); at != std::string::npos; at = folder.find('/', at + 1)) {
    ::mkdir(folder.substr(0, at).c_str(), 0700);
  }
  ::mkdir(folder.c_str(), 0700);
  struct stat status {};
  return ::lstat(folder.c_str(), &status) == 0 && S_ISDIR(status.st_mode) && status.st_uid == ::geteuid() &&
         (status.st_mode & 022) == 0;
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

}  // namespace phlox
