#include "phlox/process/emulated_cpu.h"

#include <elf.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <memory>
#include <string_view>

#include "phlox/base/descriptor.h"
#include "phlox/elf/elf_file.h"
#include "phlox/memory/living_thread.h"

namespace phlox::process {
namespace {

bool is_loader(std::string_view path) {
  const std::string_view name = path.substr(path.rfind('/') + 1);
  constexpr std::string_view kNames[] = {"ld-linux", "ld-musl", "ld.so", "ld64.so", "ld-2."};
  return std::any_of(std::begin(kNames), std::end(kNames),
                     [&](std::string_view prefix) { return name.starts_with(prefix); });
}

bool asks_for_a_loader(const Descriptor& executable) {
  const auto file = elf::FileBytes::read(executable.get(), "", std::make_shared<elf::ReadBudget>());
  if (!file) return true;
  const auto elf = elf::ElfFile::parse(*file);
  return !elf || std::any_of(elf->segments().begin(), elf->segments().end(),
                             [](const elf::Segment& segment) { return segment.type == PT_INTERP; });
}

}  // namespace

size_t loaders_in(const std::vector<Mapping>& maps) {
  return static_cast<size_t>(std::count_if(maps.begin(), maps.end(), [](const Mapping& mapping) {
    return mapping.inode != 0 && mapping.offset == 0 && is_loader(mapping.path);
  }));
}

bool is_emulated(pid_t pid, const std::vector<Mapping>& maps, RemoteAddress address) {
  const size_t loaders = loaders_in(maps);
  if (loaders == 0) return false;
  const Descriptor executable(
      ::open((memory::proc_folder(pid) + "/exe").c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat file {};
  if (!executable || ::fstat(executable.get(), &file) != 0) return false;
  bool is_loader_itself = false;
  for (const Module& module : modules_of(maps)) {
    if (module.inode != file.st_ino) continue;
    // The variable is in the executable itself: a static Python that has loaded a library.
    if (std::any_of(module.mappings.begin(), module.mappings.end(),
                    [&](const Mapping& mapping) { return mapping.holds(address); }))
      return false;
    is_loader_itself = is_loader_itself || is_loader(module.path);
  }
  return loaders > (is_loader_itself || asks_for_a_loader(executable) ? 1U : 0U);
}

}  // namespace phlox::process
