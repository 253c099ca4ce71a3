// Bytes that records of a perf.data lie in, read or unpacked together. Whoever keeps a piece keeps its
// records where they are.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

namespace phlox::importers {

using PerfPiece = std::shared_ptr<std::vector<std::byte>>;

// Hands out pieces, those that nobody keeps again: memory that was used need not be asked for, nor emptied.
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
