#include "phlox/importers/module_files.h"

#include <elf.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/auxv.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "phlox/base/byte_reader.h"
#include "phlox/base/file_identity.h"

namespace phlox::importers {
namespace {

// Files that a recording may name; beyond, each is one without a file.
constexpr size_t kMostFiles = 100'000;
constexpr std::string_view kVdso = "[vdso]";

// perf fills the id up to 20 bytes with zeros.
bool same_id(std::string_view id, std::string_view recorded) {
  return !id.empty() && recorded.starts_with(id) &&
         recorded.find_first_not_of('0', id.size()) == std::string_view::npos;
}

// Of this very process, for a recording that was made on this kernel.
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

uint32_t ModuleFile::python_version() {
  if (python_version_) return *python_version_;
  python_version_ = 0;
  if (!file_) return 0;
  const auto symbol = file_->find_symbol("Py_Version");
  if (!symbol) return 0;
  ByteReader in(file_->at(symbol->address, 8));
  const auto value = in.read<uint64_t>();
  if (!in.failed() && value >> 32 == 0) python_version_ = static_cast<uint32_t>(value >> 16);
  return *python_version_;
}

ModuleFiles::ModuleFiles(FileSearch search) : search_(std::move(search)), cache_(search_.unwind_cache) {}

std::string ModuleFiles::beneath_sysroot(std::string_view path) const {
  return search_.sysroot + std::string(path);
}

uint32_t ModuleFiles::number_of(std::string_view path, std::string_view build_id, uint64_t inode) {
  const bool full = files_.size() >= kMostFiles;
  auto key = full ? std::tuple(std::string("(further files)"), std::string(), uint64_t{0})
                  : std::tuple(std::string(path), std::string(build_id), build_id.empty() ? inode : 0);
  const auto [at, fresh] = numbers_.try_emplace(key, static_cast<uint32_t>(files_.size()));
  if (fresh) {
    files_.push_back(std::make_unique<ModuleFile>());
    files_.back()->path_ = std::get<0>(key);
    files_.back()->build_id_ = std::get<1>(key);
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

bool ModuleFiles::try_open(ModuleFile& file, const std::string& path) const {
  // Not a pipe, and nothing that a device does.
  const Descriptor descriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat there {};
  if (!descriptor || ::fstat(descriptor.get(), &there) != 0 || !S_ISREG(there.st_mode)) return false;
  auto bytes = elf::FileBytes::read(descriptor.get(), path);
  if (!bytes) return false;
  auto elf = elf::ElfFile::parse(bytes->bytes());
  if (!elf) return false;
  const std::string id = elf->build_id();
  if (!file.build_id_.empty() && !same_id(id, file.build_id_)) {
    file.trouble_ = "another build of it is there";
    return false;
  }
  file.build_id_ = id;
  file.bytes_ = *std::move(bytes);
  file.file_ = *std::move(elf);
  file.open_path_ = path;
  file.identity_ = file_identity(there);
  file.trouble_.clear();
  return true;
}

void ModuleFiles::open(ModuleFile& file) const {
  const bool is_vdso = file.path_ == kVdso;
  if (is_vdso) {
    auto bytes = own_vdso();
    auto elf = bytes ? elf::ElfFile::parse(bytes->bytes()) : fail(ErrorKind::input, "");
    // The one of another kernel would be as wrong as any other file.
    if (elf && same_id(elf->build_id(), file.build_id_)) {
      file.bytes_ = std::move(bytes);
      file.file_ = *std::move(elf);
      return;
    }
  }
  file.trouble_ = "not there";
  if (!is_vdso && file.path_.starts_with('/') && try_open(file, beneath_sysroot(file.path_))) return;
  if (file.build_id_.size() < 4) return;
  const auto in_cache = [&](std::string_view id) {
    for (const std::string& folder : search_.build_id_dirs) {
      const auto base = fmt::format("{}/.build-id/{}/{}", folder, id.substr(0, 2), id.substr(2));
      if (try_open(file, base + (is_vdso ? "/vdso" : "/elf"))) return true;
    }
    return false;
  };
  if (in_cache(file.build_id_)) return;
  // An id of 16 bytes, filled up.
  std::string_view id = file.build_id_;
  while (id.size() > 32 && id.ends_with("00")) id.remove_suffix(2);
  if (id.size() < file.build_id_.size()) in_cache(std::string(id));
}

}  // namespace phlox::importers
