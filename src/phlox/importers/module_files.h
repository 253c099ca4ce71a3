// Files of the modules that a recording names, found on this machine: by path, below --sysroot, in perf's
// cache (~/.debug), each proved by its build-id if the recording has one. In a recording made on this host, a
// file at its path must also be the very one that was mapped, by device and inode: a file of a process in a
// container has the same path, and other functions. Has what unwinding needs of these files. One for all
// processes of a recording; opens files, never a process.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "phlox/base/address.h"
#include "phlox/base/descriptor.h"
#include "phlox/elf/elf_file.h"
#include "phlox/python/loop_code.h"
#include "phlox/unwind/code_rules.h"
#include "phlox/unwind/table_cache.h"
#include "phlox/unwind/unwind_table.h"

namespace phlox::importers {

struct FileSearch {
  std::string sysroot;                     // before every path of the recording; empty: this machine's root
  std::vector<std::string> build_id_dirs;  // laid out as perf's ~/.debug
  std::string unwind_cache;                // folder of unwind tables; empty: none
};

// What a mapping says about its file, besides the path.
struct MappedIdentity {
  std::string build_id;  // hex; newer kernels have it in place of the others
  uint64_t device = 0;   // major << 32 | minor
  uint64_t inode = 0;    // 0: not known
  auto operator<=>(const MappedIdentity&) const = default;
};
// Build-ids by path, as perf read them when the recording ended.
using BuildIds = std::map<std::string, std::vector<std::string>, std::less<>>;

class ModuleFile {
 public:
  const std::string& path() const { return path_; }            // as the recording has it
  const std::string& build_id() const { return build_id_; }    // hex; empty: none
  const std::string& open_path() const { return open_path_; }  // empty: not found
  // The reason why it was not found: "not there", "another build of it is there", "another file is there".
  const std::string& trouble() const { return trouble_; }

  bool found() const { return file_.has_value(); }
  const elf::ElfFile& elf() const { return *file_; }
  // The address of code that was mapped at `start` from `offset` on, minus its address in the file.
  std::optional<uint64_t> bias_of(uint64_t start, uint64_t offset) const;
  const unwind::UnwindTable* table();
  unwind::CodeRules* code();
  bool is_loop(ImageAddress address);
  // The function at an address, by the file's symbols: for files with one or two of them.
  std::optional<std::string_view> function_at(ImageAddress address) const;
  // major << 8 | minor: from the file's own Py_Version (3.11 and later); or, if it exports Python's C API,
  // from its name, such as python3.10. 0: it is no Python.
  uint32_t python_version(std::string_view name);

 private:
  friend class ModuleFiles;
  MappedIdentity mapped_;
  std::string path_, build_id_, open_path_, identity_, trouble_;
  bool opened_ = false, table_asked_ = false, loop_asked_ = false;
  const unwind::TableCache* cache_ = nullptr;
  std::optional<elf::FileBytes> bytes_;
  std::optional<elf::ElfFile> file_;
  std::unique_ptr<unwind::UnwindTable> table_;
  std::unique_ptr<unwind::CodeRules> code_;
  python::LoopCode loop_;
  std::optional<uint32_t> python_version_;
};

class ModuleFiles {
 public:
  explicit ModuleFiles(FileSearch search);

  // Call it before the first file is requested. `ids` must outlive this. `host`, `kernel` (its release): the
  // recording's.
  void know(const BuildIds& ids, std::string_view host, std::string_view kernel);

  // The same for the same path and identity.
  uint32_t number_of(std::string_view path, const MappedIdentity& mapped);
  const std::string& path(uint32_t number) const { return files_[number]->path_; }
  // Opened when it is first needed.
  ModuleFile& file(uint32_t number);
  size_t size() const { return files_.size(); }
  // Paths that have another file than the mapped one.
  const std::vector<std::string>& others() const { return others_; }

  // A path of the recording below --sysroot.
  std::string beneath_sysroot(std::string_view path) const;

 private:
  struct Opened;
  std::vector<std::string> ids_of(const ModuleFile& file) const;
  void open(ModuleFile& file);
  bool open_vdso(ModuleFile& file, const std::vector<std::string>& ids) const;
  bool open_at_path(ModuleFile& file, std::vector<std::string>& ids);
  bool open_in_cache(ModuleFile& file, std::string_view id) const;

  FileSearch search_;
  unwind::TableCache cache_;
  const BuildIds* ids_ = nullptr;
  bool recorded_here_ = false, by_this_kernel_ = false;
  std::map<std::pair<std::string, MappedIdentity>, uint32_t> numbers_;
  std::vector<std::unique_ptr<ModuleFile>> files_;
  std::vector<std::string> others_;
};

}  // namespace phlox::importers
