// Unwind tables kept on disk by what tells a file from others (base/file_identity.h), so that the second
// start need not build them. A folder of our own (0700); what is found there is checked like anything else
// from outside, and a file that cannot be used is as good as none.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "phlox/elf/elf_file.h"
#include "phlox/unwind/unwind_table.h"

namespace phlox::unwind {

class TableCache {
 public:
  // Nothing is kept when the folder cannot be made, belongs to somebody else, or is open to others' writing.
  // Empty: no cache.
  explicit TableCache(std::string folder);

  bool usable() const { return usable_; }
  // nullptr: not there, damaged, or of another version.
  std::unique_ptr<UnwindTable> find(std::string_view identity) const;
  // Written whole or not at all: a temporary file, then a rename. Failing is no error; false says so.
  bool write(std::string_view identity, const UnwindTable& table) const;

  // The table of a module: from the cache by the identity of its file, else built, and kept if that took long
  // enough to matter. A build-id is no identity: any file may claim it. Empty: nothing is kept.
  std::unique_ptr<UnwindTable> table_of(const elf::ElfFile& file, std::string_view identity = {}) const;

 private:
  std::string folder_;
  bool usable_ = false;
};

// $XDG_CACHE_HOME/phlox/unwind or ~/.cache/phlox/unwind, by the two values; empty: neither is an absolute
// path.
std::string cache_folder(std::string_view xdg_cache_home, std::string_view home);

}  // namespace phlox::unwind
