#include "phlox/importers/module_files.h"

#include <elf.h>
#include <fmt/format.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/utsname.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "phlox/base/byte_reader.h"
#include "phlox/base/file_identity.h"
#include "phlox/base/regular_file.h"
#include "phlox/python/version.h"

namespace phlox::importers {
namespace {

// Files that a recording may name; code of further ones counts as code without a file.
constexpr size_t kMostFiles = 100'000;
constexpr std::string_view kVdso = "[vdso]";

// perf pads the id with zeros to 20 bytes.
bool same_id(std::string_view id, std::string_view recorded) {
  return !id.empty() && recorded.starts_with(id) &&
         recorded.find_first_not_of('0', id.size()) == std::string_view::npos;
}

bool is_one_of(std::string_view id, const std::vector<std::string>& recorded) {
  return std::any_of(recorded.begin(), recorded.end(),
                     [&](const std::string& other) { return same_id(id, other); });
}

// Whether a file is the mapped one. The kernel reports a mapping's device and inode from the underlying file
// system: if stat() reports a device without hardware (overlayfs, btrfs), devices cannot be compared, and
// overlayfs may put the number of a layer into the inode's upper bits.
bool is_the_mapped(const struct stat& there, const MappedIdentity& mapped) {
  const bool virtual_device = major(there.st_dev) == 0 || mapped.device >> 32 == 0;
  if (!virtual_device && mapped.device != (uint64_t{major(there.st_dev)} << 32 | minor(there.st_dev)))
    return false;
  if (there.st_ino == mapped.inode) return true;
  return virtual_device && static_cast<uint32_t>(there.st_ino) == static_cast<uint32_t>(mapped.inode);
}

// The vdso of this process, for a recording made on this kernel.
std::optional<elf::FileBytes> own_vdso() {
  const uint64_t start = ::getauxval(AT_SYSINFO_EHDR);
  if (start == 0) return std::nullopt;
  Elf64_Ehdr header;
  std::memcpy(&header, reinterpret_cast<const void*>(start), sizeof header);
  const uint64_t size = header.e_shoff + uint64_t{header.e_shnum} * header.e_shentsize;
  if (size > 65536) return std::nullopt;
  std::vector<std::byte> bytes(size);
  std::memcpy(bytes.data(), reinterpret_cast<const void*>(start), size);
  return elf::FileBytes::own(std::move(bytes));
}

}  // namespace

std::optional<uint64_t> ModuleFile::bias_of(uint64_t start, uint64_t offset) const {
  if (!file_) return std::nullopt;
  for (const elf::Segment& s : file_->segments()) {
    const uint64_t page = s.offset & ~uint64_t{4095};
    if (s.type != PT_LOAD || (s.flags & PF_X) == 0 || offset < page || offset - page >= s.file_size + 4096)
      continue;
    return start - (s.address.value + (offset - s.offset));
  }
  return std::nullopt;
}

const unwind::UnwindTable* ModuleFile::table() {
  if (!table_asked_ && file_) table_ = cache_->table_of(*file_, identity_);
  table_asked_ = true;
  return table_.get();
}

unwind::CodeRules* ModuleFile::code() {
  if (!code_ && file_) code_ = std::make_unique<unwind::CodeRules>(*file_, table());
  return code_.get();
}

bool ModuleFile::is_loop(ImageAddress address) {
  if (!loop_asked_ && file_) loop_ = python::loop_code(*file_);
  loop_asked_ = true;
  return python::is_in(loop_, address);
}

std::optional<std::string_view> ModuleFile::function_at(ImageAddress address) const {
  std::optional<std::string_view> found;
  if (!file_) return found;
  file_->for_each_symbol([&](const elf::Symbol& symbol) {
    if (address >= symbol.address && address.value - symbol.address.value < symbol.size) found = symbol.name;
    return !found;
  });
  return found;
}

uint32_t ModuleFile::python_version(std::string_view name) {
  if (python_version_) return *python_version_;
  python_version_ = 0;
  if (!file_) return 0;
  const auto symbol = file_->find_symbol("Py_Version");
  if (!symbol) {
    const auto version = python::version_of_file_name(name);
    if (version && file_->find_symbol("Py_GetVersion"))
      python_version_ = uint32_t{version->major} << 8 | version->minor;
    return *python_version_;
  }
  ByteReader in(file_->at(symbol->address, 8));
  const auto value = in.read<uint64_t>();
  if (!in.failed() && value >> 32 == 0) python_version_ = static_cast<uint32_t>(value >> 16);
  return *python_version_;
}

ModuleFiles::ModuleFiles(FileSearch search) : search_(std::move(search)), cache_(search_.unwind_cache) {}

std::string ModuleFiles::beneath_sysroot(std::string_view path) const {
  return search_.sysroot + std::string(path);
}

void ModuleFiles::know(const BuildIds& ids, std::string_view host, std::string_view kernel) {
  struct utsname here {};
  ids_ = &ids;
  // Files in --sysroot are copies.
  recorded_here_ = search_.sysroot.empty() && !host.empty() && ::uname(&here) == 0 && host == here.nodename;
  by_this_kernel_ = recorded_here_ && kernel == here.release;
}

uint32_t ModuleFiles::number_of(std::string_view path, const MappedIdentity& mapped) {
  const bool full = files_.size() >= kMostFiles;
  auto key = full ? std::pair(std::string("(further files)"), MappedIdentity())
                  : std::pair(std::string(path), mapped);
  const auto [at, fresh] = numbers_.try_emplace(key, static_cast<uint32_t>(files_.size()));
  if (fresh) {
    files_.push_back(std::make_unique<ModuleFile>());
    files_.back()->path_ = key.first;
    files_.back()->mapped_ = key.second;
    files_.back()->cache_ = &cache_;
  }
  return at->second;
}

ModuleFile& ModuleFiles::file(uint32_t number) {
  ModuleFile& file = *files_[number];
  if (!file.opened_) open(file);
  file.opened_ = true;
  return file;
}

// An opened ELF file.
struct ModuleFiles::Opened {
  elf::FileBytes bytes;
  elf::ElfFile elf;
  struct stat there;
  std::string kept;  // identity; empty: nothing of it is kept

  static std::optional<Opened> at(const std::string& path) {
    const Descriptor descriptor = open_regular(path);
    struct stat there {};
    if (!descriptor || ::fstat(descriptor.get(), &there) != 0) return std::nullopt;
    auto bytes = elf::FileBytes::read(descriptor.get(), path);
    if (!bytes) return std::nullopt;
    auto elf = elf::ElfFile::parse(*bytes);
    if (!elf) return std::nullopt;
    return Opened{*std::move(bytes), *std::move(elf), there, kept_identity(descriptor.get())};
  }
  void give(ModuleFile& file, const std::string& path) && {
    file.build_id_ = elf.build_id();
    file.bytes_ = std::move(bytes);
    file.file_ = std::move(elf);
    file.open_path_ = path;
    file.identity_ = kept;
    file.trouble_.clear();
  }
};

// A mapping's own id is certain; one that perf read at the path at the end belongs to one of the files that
// had the path.
std::vector<std::string> ModuleFiles::ids_of(const ModuleFile& file) const {
  if (!file.mapped_.build_id.empty()) return {file.mapped_.build_id};
  if (ids_ == nullptr) return {};
  const auto found = ids_->find(file.path_);
  return found == ids_->end() ? std::vector<std::string>() : found->second;
}

bool ModuleFiles::open_vdso(ModuleFile& file, const std::vector<std::string>& ids) const {
  auto bytes = own_vdso();
  auto elf = bytes ? elf::ElfFile::parse(*bytes) : fail(ErrorKind::input, "");
  // Another kernel's vdso would be as wrong as any other file. With -z perf records no build ids.
  if (!elf || !(ids.empty() ? by_this_kernel_ : is_one_of(elf->build_id(), ids))) return false;
  file.build_id_ = elf->build_id();
  file.bytes_ = std::move(bytes);
  file.file_ = *std::move(elf);
  file.trouble_.clear();
  return true;
}

// Removes the id of a file that was not mapped from `ids`.
bool ModuleFiles::open_at_path(ModuleFile& file, std::vector<std::string>& ids) {
  const std::string path = beneath_sysroot(file.path_);
  auto opened = Opened::at(path);
  if (!opened) return false;
  const std::string id = opened->elf.build_id();
  if (recorded_here_ && file.mapped_.inode != 0 && !is_the_mapped(opened->there, file.mapped_)) {
    file.trouble_ = "another file is there";
    others_.push_back(file.path_);
    std::erase_if(ids, [&](const std::string& recorded) { return same_id(id, recorded); });
    return false;
  }
  if (!ids.empty() && !is_one_of(id, ids)) {
    file.trouble_ = "another build of it is there";
    return false;
  }
  std::move(*opened).give(file, path);
  return true;
}

bool ModuleFiles::open_in_cache(ModuleFile& file, std::string_view id) const {
  const auto find = [&](std::string_view name) {
    for (const std::string& folder : search_.build_id_dirs) {
      const std::string path = fmt::format("{}/.build-id/{}/{}/{}", folder, name.substr(0, 2), name.substr(2),
                                           file.path_ == kVdso ? "vdso" : "elf");
      auto opened = Opened::at(path);
      if (!opened || !same_id(opened->elf.build_id(), id)) continue;
      std::move(*opened).give(file, path);
      return true;
    }
    return false;
  };
  if (id.size() < 4) return false;
  if (find(id)) return true;
  // An id of 16 bytes, padded.
  std::string_view shorter = id;
  while (shorter.size() > 32 && shorter.ends_with("00")) shorter.remove_suffix(2);
  return shorter.size() < id.size() && find(shorter);
}

void ModuleFiles::open(ModuleFile& file) {
  std::vector<std::string> ids = ids_of(file);
  file.trouble_ = "not there";
  if (file.path_ == kVdso ? open_vdso(file, ids) : file.path_.starts_with('/') && open_at_path(file, ids))
    return;
  // With several ids it is unknown which one is right.
  if (ids.size() != 1) return;
  file.build_id_ = ids.front();
  open_in_cache(file, ids.front());
}

}  // namespace phlox::importers
