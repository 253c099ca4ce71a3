#include "phlox/process/text_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "phlox/base/descriptor.h"
#include "phlox/base/interrupted.h"

namespace phlox::process {

std::optional<std::string> read_text(const std::string& path) {
  // A memory map of a million lines is 100 MB; nothing in /proc is longer than this.
  constexpr size_t kLongest = size_t{256} << 20;
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) return {};
  std::string text;
  char block[65536];
  for (;;) {
    const ssize_t got = retried([&] { return ::read(file.get(), block, sizeof block); });
    if (got < 0) return {};
    if (got == 0) return text;
    text.append(block, static_cast<size_t>(got));
    if (text.size() > kLongest) {
      errno = EFBIG;
      return {};
    }
  }
}

std::optional<std::string> read_regular(const Descriptor& file, size_t most) {
  struct stat status {};
  if (!file || ::fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode)) return {};
  if (status.st_size < 0 || static_cast<size_t>(status.st_size) > most) return {};
  std::string text(static_cast<size_t>(status.st_size), '\0');
  size_t have = 0;
  while (have < text.size()) {
    const ssize_t got = retried([&] {
      return ::pread(file.get(), text.data() + have, text.size() - have, static_cast<off_t>(have));
    });
    if (got < 0) return {};
    if (got == 0) break;  // the file became shorter
    have += static_cast<size_t>(got);
  }
  text.resize(have);
  return text;
}

}  // namespace phlox::process
