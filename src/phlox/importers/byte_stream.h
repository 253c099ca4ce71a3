// Bytes in order, from a file or a decompressor, in little memory. A read beyond the end gives zero and sets
// failed(), as in base/byte_reader.h, which is for bytes that are all in memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "phlox/importers/input.h"

namespace phlox::importers {

class ByteStream {
 public:
  // Fills from the start on; returns how many bytes, 0 at the end.
  using Source = std::function<size_t(std::span<std::byte>)>;

  explicit ByteStream(Source source) : source_(std::move(source)) {}
  // From an input, from `offset` to `end`.
  ByteStream(Input& input, uint64_t offset, uint64_t end = ~uint64_t{0});

  bool at_end();
  bool failed() const { return failed_; }
  uint8_t byte();
  uint32_t u32();
  uint64_t u64();
  uint64_t uleb128();
  // Up to a NUL, which is consumed; the first `most` bytes of a longer one.
  std::string c_string(size_t most);

 private:
  bool fill();

  // The first piece is small if the length of the source is not known: most such sources are small.
  static constexpr size_t kFirst = size_t{4} << 10, kPiece = size_t{256} << 10;
  Source source_;
  size_t piece_ = kFirst, most_ = kPiece;
  std::vector<std::byte> buffer_;
  size_t at_ = 0, end_ = 0;
  bool failed_ = false, ended_ = false;
};

}  // namespace phlox::importers
