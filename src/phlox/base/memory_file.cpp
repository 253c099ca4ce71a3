#include "phlox/base/memory_file.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

namespace phlox {

Descriptor memory_file(std::span<const std::byte> bytes) {
  Descriptor file(::memfd_create("phlox", MFD_CLOEXEC));
  if (file && ::write(file.get(), bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size()))
    return {};
  return file;
}

std::string path_of(const Descriptor& file) {
  return fmt::format("/proc/self/fd/{}", file.get());
}

}  // namespace phlox
