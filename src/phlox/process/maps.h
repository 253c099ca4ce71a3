// The mappings of a target, and their files, opened below the target's own root.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "phlox/base/address.h"
#include "phlox/base/descriptor.h"
#include "phlox/base/result.h"
#include "phlox/elf/elf_file.h"
#include "phlox/memory/remote_memory.h"

namespace phlox::process {

// A line of /proc/PID/maps (Documentation/filesystems/proc.rst).
struct Mapping {
  RemoteAddress start, end;
  bool readable = false, writable = false, executable = false;
  uint64_t offset = 0;
  uint64_t device = 0;  // major:minor as in the text, packed
  uint64_t inode = 0;   // 0: no file
  std::string path;     // "" or "[heap]" for memory without a file; " (deleted)" removed
  bool deleted = false;
  bool holds(RemoteAddress a) const { return a >= start && a < end; }
};

std::vector<Mapping> parse_maps(std::string_view text);
Result<std::vector<Mapping>> read_maps(pid_t pid);

// Neighbouring mappings of one file: an executable or a library, loaded once.
struct Module {
  std::string path;  // as the target sees it
  uint64_t device = 0, inode = 0;
  bool deleted = false;
  RemoteAddress start;            // of the first mapping
  std::vector<Mapping> mappings;  // with the .bss after the file's last one
};
std::vector<Module> modules_of(const std::vector<Mapping>& maps);

// The file of a mapping, whatever the target's mount namespace or root: first /proc/PID/map_files (the very
// inode, deleted ones too; needs CAP_SYS_ADMIN or CAP_CHECKPOINT_RESTORE), then the path below /proc/PID/root
// (for a plain chroot, whose maps have the host's path, the part below it), if the inode agrees. `kept_root`:
// from open_root(), for a process that may have ended.
Descriptor open_own_file(pid_t pid, const Module& module, const Descriptor& kept_root = {});
// Otherwise, if the kernel cannot open below a folder (openat2): the path on this host, and the executable
// itself.
Result<Descriptor> open_module(pid_t pid, const Module& module, const Descriptor& kept_root = {});

// The module's file, parsed, with its load bias.
struct LoadedModule {
  Module module;
  elf::FileBytes file;
  elf::ElfFile elf;
  uint64_t bias = 0;  // RemoteAddress = ImageAddress + bias

  RemoteAddress remote(ImageAddress a) const { return RemoteAddress(a.value + bias); }
};
// `budget`: of the process, for all its files and its memory; none: no limit.
using Budget = std::shared_ptr<elf::ReadBudget>;
Result<LoadedModule> load_module(pid_t pid, const Module& module, const Budget& budget = {});
Result<LoadedModule> load_module(const Descriptor& file, const Module& module, const Budget& budget = {});
// The same from bytes of the file that were read for another process.
Result<LoadedModule> load_module(elf::FileBytes file, const Module& module);
// The same from the process's memory, for a file that cannot be opened any more (deleted, replaced, another
// user's): segments and dynamic symbols, no sections. The vdso is also read this way.
Result<LoadedModule> load_from_memory(memory::RemoteMemory& memory, const Module& module,
                                      const Budget& budget = {});

}  // namespace phlox::process
