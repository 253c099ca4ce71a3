#include "phlox/base/regular_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

namespace phlox {

Descriptor open_regular(const std::string& path, const std::optional<FileUser>& user) {
  const ActAs as(user);
  if (!as) return {};
  return open_if_regular(Descriptor(::open(path.c_str(), O_PATH | O_CLOEXEC)));
}

Descriptor open_if_regular(const Descriptor& found) {
  struct stat status {};
  if (!found || ::fstat(found.get(), &status) != 0 || !S_ISREG(status.st_mode)) return {};
  return Descriptor(
      ::open(fmt::format("/proc/self/fd/{}", found.get()).c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
}

}  // namespace phlox
