#include "phlox/target/source_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

#include "phlox/base/descriptor.h"

namespace phlox::target {
namespace {

std::string link_of(const std::string& path) {
  char text[4096];
  const ssize_t size = ::readlink(path.c_str(), text, sizeof text);
  return size < 0 ? std::string() : std::string(text, static_cast<size_t>(size));
}

}  // namespace

std::optional<std::string> read_file_of(pid_t pid, const std::string& path, size_t most) {
  if (path.empty() || path.find('\0') != std::string::npos) return {};
  const std::string whole =
      path[0] == '/' ? path : fmt::format("{}/{}", link_of(fmt::format("/proc/{}/cwd", pid)), path);
  const Descriptor root(::open(fmt::format("/proc/{}/root", pid).c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!root) return {};
  open_how how{};
  how.flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
  how.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS;
  const Descriptor file(
      static_cast<int>(::syscall(SYS_openat2, root.get(), whole.c_str(), &how, sizeof how)));
  struct stat status {};
  if (!file || ::fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode)) return {};
  if (status.st_size < 0 || static_cast<size_t>(status.st_size) > most) return {};
  std::string text(static_cast<size_t>(status.st_size), '\0');
  size_t have = 0;
  while (have < text.size()) {
    const ssize_t got = ::read(file.get(), text.data() + have, text.size() - have);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return {};
    if (got == 0) break;  // it became shorter
    have += static_cast<size_t>(got);
  }
  text.resize(have);
  return text;
}

}  // namespace phlox::target
