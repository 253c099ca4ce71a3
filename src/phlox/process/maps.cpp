#include "phlox/process/maps.h"

#include <elf.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <optional>

#include "phlox/base/regular_file.h"
#include "phlox/base/text.h"
#include "phlox/memory/living_thread.h"
#include "phlox/process/root_folder.h"
#include "phlox/process/text_file.h"

namespace phlox::process {
namespace {

bool take_hex(std::string_view& text, uint64_t& value, char after) {
  if (!take_number(text, value, 16) || !text.starts_with(after)) return false;
  text.remove_prefix(1);
  return true;
}

// The kernel writes a newline in a path as \012 (seq_file's mangle_path).
std::string unmangle(std::string_view text) {
  std::string path;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\' && text.substr(i + 1).starts_with("012")) {
      path += '\n';
      i += 3;
    } else {
      path += text[i];
    }
  }
  return path;
}

bool same_file(const Descriptor& file, const Module& module) {
  struct stat status {};
  if (::fstat(file.get(), &status) != 0) return false;
  // With overlayfs and btrfs, device numbers in maps and stat differ; only the inode is compared.
  return status.st_ino == module.inode;
}

}  // namespace

std::vector<Mapping> parse_maps(std::string_view text) {
  std::vector<Mapping> maps;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    Mapping m;
    uint64_t start = 0, stop = 0, major = 0, minor = 0;
    if (!take_hex(line, start, '-') || !take_hex(line, stop, ' ') || line.size() < 5) continue;
    m.start = RemoteAddress(start);
    m.end = RemoteAddress(stop);
    m.readable = line[0] == 'r';
    m.writable = line[1] == 'w';
    m.executable = line[2] == 'x';
    line.remove_prefix(5);
    if (!take_hex(line, m.offset, ' ') || !take_hex(line, major, ':') || !take_hex(line, minor, ' '))
      continue;
    m.device = major << 32 | minor;
    if (!take_number(line, m.inode)) continue;
    const size_t path = line.find_first_not_of(' ');
    if (path != std::string_view::npos) {
      m.path = unmangle(line.substr(path));
      constexpr std::string_view kDeleted = " (deleted)";
      if (m.inode != 0 && m.path.ends_with(kDeleted)) {
        m.deleted = true;
        m.path.resize(m.path.size() - kDeleted.size());
        // Memory on huge pages, or shared with children: the kernel backs it with an internal file.
        if (m.path == "/anon_hugepage" || m.path == "/dev/zero") {
          m.inode = m.device = m.offset = 0;
          m.deleted = false;
          m.path.clear();
        }
      }
    }
    maps.push_back(std::move(m));
  }
  return maps;
}

Result<std::vector<Mapping>> read_maps(pid_t pid) {
  const auto text = read_text(memory::proc_folder(pid) + "/maps");
  if (!text) {
    const int error = errno;
    if (error == ENOENT || error == ESRCH)
      return fail(ErrorKind::no_such_process, fmt::format("no process with id {}", pid));
    return fail(error == EACCES || error == EPERM ? ErrorKind::permission : ErrorKind::system,
                fmt::format("cannot read the memory map of process {}: {}", pid, std::strerror(error)));
  }
  return parse_maps(*text);
}

std::vector<Module> modules_of(const std::vector<Mapping>& maps) {
  std::vector<Module> modules;
  for (size_t i = 0; i < maps.size(); ++i) {
    const Mapping& m = maps[i];
    if (m.inode == 0 || m.path.empty()) {
      // The part of .bss beyond the file's last page is anonymous and follows directly. Code there does not
      // belong to the file.
      if (!modules.empty() && m.path.empty() && modules.back().mappings.back().end == m.start &&
          modules.back().mappings.back().writable && m.writable && !m.executable) {
        modules.back().mappings.push_back(m);
      }
      continue;
    }
    // If segments are 2 MiB apart, ld.so leaves a gap without access rights. Its offset is beyond that of the
    // page that both segments share.
    const auto offset_before = [&modules] {
      const auto& before = modules.back().mappings;
      const auto used = std::find_if(before.rbegin(), before.rend(), [](const Mapping& b) {
        return b.readable || b.writable || b.executable;
      });
      return used == before.rend() ? 0 : used->offset;
    };
    // A file that starts again at offset 0 is loaded a second time (dlmopen, a copy in another namespace).
    const bool same = !modules.empty() && modules.back().inode == m.inode &&
                      modules.back().device == m.device && modules.back().path == m.path &&
                      m.offset >= offset_before() &&
                      (m.offset != 0 || m.start == modules.back().mappings.back().end);
    if (!same) modules.push_back(Module{m.path, m.device, m.inode, m.deleted, m.start, {}});
    modules.back().mappings.push_back(m);
  }
  return modules;
}

Descriptor open_own_file(pid_t pid, const Module& module, const Descriptor& kept_root) {
  if (!module.mappings.empty()) {
    const Mapping& first = module.mappings.front();
    const auto path = fmt::format("/proc/{}/map_files/{:x}-{:x}", pid, first.start.value, first.end.value);
    if (Descriptor file = open_regular(path)) return file;
  }
  if (module.deleted) return {};
  const Descriptor opened_root = kept_root ? Descriptor() : open_root(pid);
  const Descriptor& root = kept_root ? kept_root : opened_root;
  Descriptor file = open_regular_beneath(root, module.path);
  if (file && same_file(file, module)) return file;
  const std::string folder = path_of(root);
  if (!module.path.starts_with(folder + "/")) return {};
  file = open_regular_beneath(root, module.path.substr(folder.size()));
  return file && same_file(file, module) ? std::move(file) : Descriptor();
}

Result<Descriptor> open_module(pid_t pid, const Module& module, const Descriptor& kept_root) {
  if (Descriptor file = open_own_file(pid, module, kept_root)) return file;
  if (!module.deleted) {
    Descriptor file = open_regular(module.path);
    if (file && same_file(file, module)) return file;
  }
  // The executable itself can always be opened, even if it was deleted or replaced on disk.
  Descriptor exe(::open((memory::proc_folder(pid) + "/exe").c_str(), O_RDONLY | O_CLOEXEC));
  if (exe && same_file(exe, module)) return exe;
  return fail(ErrorKind::input,
              fmt::format("cannot open {} of process {}{}", module.path, pid,
                          module.deleted ? ": it was deleted or replaced while the program runs" : ""));
}

namespace {

// The offset by which the whole module was moved: RemoteAddress - ImageAddress; none if no mapping fits a
// segment.
std::optional<uint64_t> bias_of(const Module& module, const elf::ElfFile& elf) {
  for (const Mapping& m : module.mappings) {
    for (const elf::Segment& s : elf.segments()) {
      const uint64_t page_offset = s.offset & ~uint64_t{4095};
      if (s.type != PT_LOAD || m.offset != page_offset || ((s.flags & PF_X) != 0) != m.executable) continue;
      if (m.inode == 0 && m.offset == 0 && &m != &module.mappings.front()) continue;  // .bss
      return m.start.value - (s.address.value - (s.offset - page_offset));
    }
  }
  return {};
}

}  // namespace

Result<LoadedModule> load_module(pid_t pid, const Module& module, const Budget& budget) {
  const auto descriptor = open_module(pid, module);
  if (!descriptor) return fail(descriptor);
  return load_module(*descriptor, module, budget);
}

Result<LoadedModule> load_module(const Descriptor& descriptor, const Module& module, const Budget& budget) {
  auto file = elf::FileBytes::read(descriptor.get(), module.path, budget);
  if (!file) return fail(file);
  return load_module(*std::move(file), module);
}

Result<LoadedModule> load_module(elf::FileBytes file, const Module& module) {
  auto elf = elf::ElfFile::parse(file);
  if (!elf) return fail(elf.error().kind, fmt::format("{}: {}", module.path, elf.error().message));
  LoadedModule loaded{module, std::move(file), std::move(*elf), 0};
  loaded.bias =
      bias_of(module, loaded.elf)
          .value_or(module.start.value - module.mappings.front().offset - loaded.elf.first_load().value);
  return loaded;
}

namespace {

// Checked before the image is copied: any memory can be mapped under any name.
bool begins_like_elf(memory::RemoteMemory& memory, const Module& module) {
  std::array<std::byte, SELFMAG> magic{};
  return !module.mappings.empty() && memory.read(module.mappings.front().start, std::span(magic)) &&
         std::memcmp(magic.data(), ELFMAG, SELFMAG) == 0;
}

}  // namespace

Result<LoadedModule> load_from_memory(memory::RemoteMemory& memory, const Module& module,
                                      const Budget& budget) {
  // libpython's text and data are below 64 MiB; a larger module is read in part.
  constexpr uint64_t kMost = uint64_t{256} << 20;
  // Reading a page of memory takes that much longer than a page of a file: the kernel looks up each one.
  constexpr uint64_t kDearer = 4;
  std::vector<std::byte> image;
  if (!begins_like_elf(memory, module))
    return fail(ErrorKind::input, fmt::format("{} is no ELF file in memory", module.path));
  for (const Mapping& m : module.mappings) {
    if (!m.readable || (m.inode == 0 && &m != &module.mappings.front())) continue;
    const uint64_t size = m.end - m.start;
    if (m.offset > kMost || size > kMost - m.offset) continue;
    const uint64_t end = m.offset + size, grows = end - std::min<uint64_t>(image.size(), end);
    if (end > elf::FileBytes::room() || (budget && !budget->take(kDearer * grows))) continue;
    if (grows != 0) image.resize(end);
    // A mapping may extend beyond its file: read page by page whatever is readable.
    if (memory.read(m.start, std::span(image).subspan(m.offset, size))) continue;
    for (uint64_t at = 0; at < size; at += 4096) {
      memory.read(m.start + at, std::span(image).subspan(m.offset + at, std::min<uint64_t>(4096, size - at)));
    }
  }
  if (image.empty()) return fail(ErrorKind::input, fmt::format("{} is not readable in memory", module.path));
  auto file = elf::FileBytes::own(std::move(image));
  const auto first = elf::ElfFile::parse(file);
  if (!first)
    return fail(first.error().kind, fmt::format("{} in memory: {}", module.path, first.error().message));
  const auto bias = bias_of(module, *first);
  if (!bias)
    return fail(ErrorKind::input, fmt::format("{} in memory: no segment is where a mapping is", module.path));
  auto elf = elf::ElfFile::parse(file, *bias);
  if (!elf) return fail(elf);
  return LoadedModule{module, std::move(file), std::move(*elf), *bias};
}

}  // namespace phlox::process
