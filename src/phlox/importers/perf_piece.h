// Bytes that contain records of a perf.data, read or unpacked together. A user that keeps a piece keeps its
// records in place.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

namespace phlox::importers {

using PerfPiece = std::shared_ptr<std::vector<std::byte>>;

// Hands out pieces, and reuses those that no user keeps: used memory need not be allocated or cleared again.
class PerfPieces {
 public:
  PerfPiece take() {
    for (const PerfPiece& piece : kept_) {
      if (piece.use_count() == 1) return piece;
    }
    auto piece = std::make_shared<std::vector<std::byte>>();
    if (kept_.size() < kMostKept) kept_.push_back(piece);
    return piece;
  }

 private:
  // Two rounds of the rings of four CPUs.
  static constexpr size_t kMostKept = 16;
  std::vector<PerfPiece> kept_;
};

}  // namespace phlox::importers
