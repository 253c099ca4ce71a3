// An input whose text is UTF-16, as Windows' PowerShell writes what a program prints: read as UTF-8, forwards
// only, like a pipe (input.h). No format has to know.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "phlox/importers/input.h"

namespace phlox::importers {

class Utf16Input : public Input {
 public:
  // Null: it does not begin with a byte order mark of UTF-16. `text` must outlive it.
  static std::unique_ptr<Utf16Input> of(Input& text);

  size_t read_at(uint64_t offset, std::span<std::byte> into) override;
  std::optional<uint64_t> size() const override { return std::nullopt; }
  bool lost() const override { return utf8_.lost() || text_.lost(); }
  int error() const override { return text_.error(); }

 private:
  Utf16Input(Input& text, bool big_endian);
  size_t convert(std::span<std::byte> into);
  void take_unit(uint32_t unit);
  void put(uint32_t point);

  Input& text_;
  bool big_endian_;
  uint64_t taken_;                // bytes of text_
  std::vector<std::byte> piece_;  // of text_
  std::string ready_;             // UTF-8 not requested so far
  size_t given_ = 0;              // of ready_
  uint32_t high_ = 0;             // the first half of a surrogate pair
  bool ended_ = false;
  Forwards utf8_;
};

}  // namespace phlox::importers
