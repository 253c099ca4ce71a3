// Names of a module's addresses, kept on disk, so that a second look does not read its symbols and its debug
// information again (the C library's are compressed: 60 ms). A folder of our own; what is found there is
// checked like anything else from outside, and a file that cannot be used is as good as none.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "phlox/base/address.h"
#include "phlox/elf/elf_file.h"
#include "phlox/symbols/naming.h"

namespace phlox::symbols {

class NameCache {
 public:
  NameCache() = default;  // keeps nothing
  // `identity`: which file's names, and by which debug files. Other names have another identity.
  NameCache(std::string folder, std::string identity);

  // nullptr: not there. Valid as long as this.
  const Naming* find(ImageAddress address);
  void add(ImageAddress address, const Naming& naming);
  // What was added, with what was there. Failing is no error.
  void write() const;

  static std::string bytes_of(std::string_view identity, const std::unordered_map<uint64_t, Naming>& names);
  // Empty when the bytes are damaged, or of another identity.
  static std::unordered_map<uint64_t, Naming> parse(std::string_view bytes, std::string_view identity);

 private:
  std::string folder_, identity_, file_;
  // As it was written; a recording asks for few of a file's names, and only those are made.
  std::optional<elf::FileBytes> kept_;
  std::unordered_map<uint64_t, size_t> places_;  // in kept_, by address
  std::unordered_map<uint64_t, Naming> names_;
  size_t fresh_ = 0;  // of them
};

}  // namespace phlox::symbols
