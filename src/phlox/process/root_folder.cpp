#include "phlox/process/root_folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/openat2.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

#include "phlox/base/regular_file.h"
#include "phlox/memory/living_thread.h"

namespace phlox::process {

Descriptor open_root(pid_t pid) {
  return Descriptor(::open((memory::proc_folder(pid) + "/root").c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
}

std::string path_of(const Descriptor& folder) {
  char text[4096];
  const ssize_t size = ::readlink(fmt::format("/proc/self/fd/{}", folder.get()).c_str(), text, sizeof text);
  return size < 0 ? std::string() : std::string(text, static_cast<size_t>(size));
}

Descriptor open_beneath(const Descriptor& root, const std::string& path, int flags) {
  if (!root) return {};
  open_how how{};
  how.flags = static_cast<unsigned>(O_RDONLY | O_CLOEXEC | flags);
  how.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS;
  // EAGAIN: a folder is being renamed there, so the kernel could not determine whether ".." led out
  // (openat2(2)).
  constexpr int kMostTries = 16;
  Descriptor file;
  for (int i = 0; i < kMostTries; ++i) {
    file = Descriptor(static_cast<int>(::syscall(SYS_openat2, root.get(), path.c_str(), &how, sizeof how)));
    if (file || errno != EAGAIN) break;
  }
  return file;
}

Descriptor open_regular_beneath(const Descriptor& root, const std::string& path, int flags) {
  return open_if_regular(open_beneath(root, path, O_PATH | flags));
}

}  // namespace phlox::process
