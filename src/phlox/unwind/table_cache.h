// Unwind tables kept on disk under the identity of their file (base/file_identity.h), so that the second
// start need not build them. A folder of our own (0700). Its files are checked like any other input, and an
// unusable file counts as absent.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "phlox/elf/elf_file.h"
#include "phlox/unwind/unwind_table.h"

namespace phlox::unwind {

class TableCache {
 public:
  // Nothing is kept if the folder cannot be made, belongs to another user, or others may write into it.
  // Empty: no cache.
  explicit TableCache(std::string folder);

  bool usable() const { return usable_; }
  // nullptr: absent, damaged, or of another version.
  std::unique_ptr<UnwindTable> find(std::string_view identity) const;
  // Written completely or not at all: a temporary file, then a rename. Failing is no error; false says so.
  bool write(std::string_view identity, const UnwindTable& table) const;

  // The table of a module: from the cache by the identity of its file, otherwise built, and kept if that took
  // noticeably long. A build-id is no identity: any file may claim it. Empty: nothing is kept.
  std::unique_ptr<UnwindTable> table_of(const elf::ElfFile& file, std::string_view identity = {}) const;

 private:
  std::string folder_;
  bool usable_ = false;
};

// $XDG_CACHE_HOME/phlox/unwind or ~/.cache/phlox/unwind, from the two values; empty: neither is an absolute
// path.
std::string cache_folder(std::string_view xdg_cache_home, std::string_view home);

}  // namespace phlox::unwind
