// Finds a module's debug information outside the module: by build-id, by .gnu_debuglink (checked by its CRC),
// and, only if asked for, from a debuginfod server. Opens files by path; uses only files that prove to belong
// to the module.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "phlox/base/descriptor.h"
#include "phlox/base/file_user.h"
#include "phlox/elf/elf_file.h"
#include "phlox/symbols/debuginfod.h"

namespace phlox::symbols {

struct DebugSearch {
  std::vector<std::string> folders = {"/usr/lib/debug"};  // those of --debug-path come before it
  std::shared_ptr<Debuginfod> debuginfod = {};            // whom to ask for what is not here; none: nobody
  std::string name_cache;                                 // folder of names found before; empty: none
  std::optional<FileUser> user = {};                      // the user whose rights open the files; none: ours
  std::shared_ptr<elf::ReadBudget> budget = {};           // for all files of one target; none: no limit

  // For reading, with the rights of `user`, except for what debuginfod keeps in our own folder.
  Descriptor open(const std::string& path) const;
};

// .gnu_debuglink: a file name and the CRC-32 of its contents.
struct DebugLink {
  std::string name;
  uint32_t crc = 0;
};
std::optional<DebugLink> debug_link(const elf::ElfFile& file);

// .gnu_debugaltlink: the file into which dwz moved parts of several files; its build-id as hex.
struct DebugAltLink {
  std::string path;
  std::string build_id;
};
std::optional<DebugAltLink> debug_alt_link(const elf::ElfFile& file);

// Every place to search, best first. `module_path`: by which it can be opened here.
std::vector<std::string> debug_file_candidates(std::string_view build_id,
                                               const std::optional<DebugLink>& link,
                                               std::string_view module_path, const DebugSearch& search);
std::vector<std::string> alt_file_candidates(const DebugAltLink& link, std::string_view debug_path,
                                             const DebugSearch& search);

// The first candidate that belongs to the module, by build-id or CRC; empty: none.
std::string find_debug_file(const elf::ElfFile& module, std::string_view module_path,
                            const DebugSearch& search);
std::string find_alt_file(const elf::ElfFile& debug, std::string_view debug_path, const DebugSearch& search);

}  // namespace phlox::symbols
