// The executable mappings of a process, for unwinding: modules with their load bias and unwind table. A
// module is opened when a stack first leads there, and kept, because the process may be gone, and its files
// replaced, before names are needed. Called by the recorder's thread.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "phlox/base/clock.h"
#include "phlox/base/descriptor.h"
#include "phlox/memory/remote_memory.h"
#include "phlox/process/jit_files.h"
#include "phlox/process/maps.h"
#include "phlox/process/root_folder.h"
#include "phlox/python/loop_code.h"
#include "phlox/sampler/assemble/shared_files.h"
#include "phlox/unwind/table_cache.h"
#include "phlox/unwind/unwinder.h"

namespace phlox::sampler {

class AddressSpace {
 public:
  struct Mapped {
    process::Module file;  // as first seen
    bool opened = false;   // or tried to; the following members are valid from then on
    uint64_t bias = 0;
    std::string build_id;
    std::optional<process::LoadedModule> loaded;  // none: it could not be opened
    Descriptor descriptor;                        // the file, for names after the process is gone
    std::shared_ptr<SharedFile> shared;           // null: no other process has it
    std::shared_ptr<const unwind::UnwindTable> table;
    std::unique_ptr<unwind::CodeRules> code;  // used where the table has no rule
    bool table_asked = false;
    bool loop_asked = false;
    python::LoopCode loop;
  };

  // `memory` must outlive it: the vdso is read from it. So must `files`; null: it shares none.
  AddressSpace(pid_t pid, memory::RemoteMemory& memory, std::string cache_folder,
               SharedFiles* files = nullptr);

  // Reads the maps again; changes nothing if no executable mapping changed. False: the process is gone.
  bool refresh(Nanoseconds now);
  Nanoseconds refreshed_at() const { return refreshed_at_; }

  const unwind::ModuleMap& map() const { return map_; }
  uint16_t machine() const { return machine_; }
  const unwind::UnwindTable* table_of(uint32_t module);
  unwind::CodeRules* code_of(uint32_t module);
  const Mapped& mapped(uint32_t module) { return opened(module); }
  const process::Module& file_of(uint32_t module) const { return mapped_[module]->file; }
  // The same for two modules: they are one file, at one path, read with the rights of one user. Empty: not
  // known, or it may change between two looks (FUSE).
  std::string identity_of(uint32_t module) const;
  // A descriptor of the module's file, or of a copy of the vdso; the caller keeps it.
  Descriptor take_descriptor(uint32_t module);
  // Another one of the same file.
  Descriptor copy_descriptor(uint32_t module) const;
  size_t size() const { return mapped_.size(); }
  Descriptor take_root() { return std::move(root_); }
  // The user whose rights open files that the process names.
  const std::optional<FileUser>& user() const { return user_; }
  // Files in which a JIT compiler lists its code, opened while they existed.
  struct JitDump {
    process::Module file;
    Descriptor descriptor;
  };
  std::vector<JitDump> take_jitdumps() { return std::move(jitdumps_); }
  Descriptor take_perf_map();
  // Others of the same files and folder.
  std::vector<JitDump> copy_jitdumps() const;
  Descriptor copy_perf_map() const { return copy_of(perf_map_); }
  Descriptor copy_root() const { return copy_of(root_); }
  size_t opened_modules() const;
  bool is_loop(const unwind::NativeFrame& frame);

 private:
  static Descriptor copy_of(const Descriptor& descriptor);
  uint32_t number_of(const process::Module& module);
  Mapped& opened(uint32_t module);
  Result<process::LoadedModule> load(uint32_t module);
  bool is_generated(uint32_t module) const;
  // Whether a copy of the module's code is mapped there.
  bool has_code(uint32_t module, const process::Mapping& mapping);
  std::optional<unwind::Rule> trampoline_at(RemoteAddress start) const;
  void keep_jitdump(const process::Module& module);
  void keep_perf_map();

  pid_t pid_;
  memory::RemoteMemory& memory_;
  Descriptor root_;  // the process's
  std::optional<FileUser> user_;
  process::Budget budget_ = std::make_shared<elf::ReadBudget>();  // for all its files
  unwind::TableCache cache_;
  SharedFiles* files_;
  unwind::ModuleMap map_;
  std::vector<std::unique_ptr<Mapped>> mapped_;
  std::unordered_map<uint64_t, uint32_t> by_start_;  // the last module that started there
  std::optional<process::JitWriter> jit_writer_;     // as last seen
  std::vector<JitDump> jitdumps_;
  Descriptor perf_map_;
  struct Seen {
    uint64_t start, end, inode, offset;
    friend bool operator==(const Seen&, const Seen&) = default;
  };
  std::vector<Seen> seen_;  // the executable mappings of the last refresh
  Nanoseconds refreshed_at_ = 0;
  uint16_t machine_ = 0;
};

}  // namespace phlox::sampler
