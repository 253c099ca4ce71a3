// Names of a module's addresses, kept on disk, so that the next run does not read its symbols and its debug
// information again (the C library's are compressed: 60 ms). A folder of our own. Its files are checked like
// any other input, and an unusable file counts as absent.
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
  // `identity`: the file whose names these are, and its debug files. Other names have another identity.
  NameCache(std::string folder, std::string identity);

  // The kept name; none: there is none.
  std::optional<Naming> find(ImageAddress address);
  void add(ImageAddress address, const Naming& naming);
  // Saves the added names together with the old ones. Failing is no error.
  void write() const;

  static std::string bytes_of(std::string_view identity, const std::unordered_map<uint64_t, Naming>& names);
  // Empty if the bytes are damaged, or have another identity.
  static std::unordered_map<uint64_t, Naming> parse(std::string_view bytes, std::string_view identity);

 private:
  // An address, and the position of its naming; sorted.
  using Places = std::vector<std::pair<uint64_t, size_t>>;
  static Places places_in(std::string_view bytes, std::string_view identity);
  const size_t* place_of(ImageAddress address) const;

  std::string folder_, identity_, file_;
  // As it was written. A recording needs few of a file's names, and only those are decoded.
  std::optional<elf::FileBytes> kept_;
  Places places_;                               // in it
  std::unordered_map<uint64_t, Naming> names_;  // added names
};

}  // namespace phlox::symbols
