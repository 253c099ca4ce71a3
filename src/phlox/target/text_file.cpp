#include "phlox/target/text_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "phlox/base/descriptor.h"

namespace phlox::target {

std::optional<std::string> read_text(const std::string& path) {
  // A map of a million lines is 100 MB; more is not a file of /proc's.
  constexpr size_t kLongest = size_t{256} << 20;
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) return {};
  std::string text;
  char block[65536];
  for (;;) {
    const ssize_t got = ::read(file.get(), block, sizeof block);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return {};
    if (got == 0) return text;
    text.append(block, static_cast<size_t>(got));
    if (text.size() > kLongest) {
      errno = EFBIG;
      return {};
    }
  }
}

}  // namespace phlox::target
