// Names of a module's addresses, kept on disk, so that a second look does not read its symbols and its debug
// information again (the C library's are compressed: 60 ms). A folder of our own; what is found there is
// checked like anything else from outside, and a file that cannot be used is as good as none.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "phlox/base/address.h"
#include "phlox/elf/elf_file.h"
#include "phlox/symbols/naming.h"

namespace phlox::symbols {

class NameCache {
 public:
  NameCache() = default;  // keeps nothing
  // `identity`: which file's names, and by which debug files. Other names have another identity.
  NameCache(std::string folder, std::string identity);

  // What was kept; none: it is not there.
  std::optional<Naming> find(ImageAddress address);
  void add(ImageAddress address, const Naming& naming);
  // What was added, with what was there. Failing is no error.
  void write() const;

  static std::string bytes_of(std::string_view identity, const std::unordered_map<uint64_t, Naming>& names);
  // Empty when the bytes are damaged, or of another identity.
  static std::unordered_map<uint64_t, Naming> parse(std::string_view bytes, std::string_view identity);

 private:
  // Of an address, and where its naming lies; sorted.
  using Places = std::vector<std::pair<uint64_t, size_t>>;
  static Places places_in(std::string_view bytes, std::string_view identity);
  const size_t* place_of(ImageAddress address) const;

  std::string folder_, identity_, file_;
  // As it was written; a recording asks for few of a file's names, and only those are made.
  std::optional<elf::FileBytes> kept_;
  Places places_;                               // in it
  std::unordered_map<uint64_t, Naming> names_;  // that were added
};

}  // namespace phlox::symbols
