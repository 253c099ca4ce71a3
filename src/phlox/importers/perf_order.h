// Records in the order of their times. perf record writes ring after ring; a mark between two rounds says
// that no later record is older than those of the round before the last. Memory: two rounds, and never more
// than a cap; records stay in the pieces in which they were read, and are not copied. Records of equal times
// keep the order of the file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <span>
#include <vector>

#include "phlox/base/clock.h"
#include "phlox/importers/perf_piece.h"

namespace phlox::importers {

class PerfOrder {
 public:
  using Deliver = std::function<void(std::span<const std::byte> record, Nanoseconds time)>;
  // A ring is 512 KiB a CPU by default: two rounds of 64 CPUs.
  static constexpr size_t kMostBytes = size_t{64} << 20;

  explicit PerfOrder(Deliver deliver, size_t most_bytes = kMostBytes)
      : deliver_(std::move(deliver)), most_bytes_(most_bytes) {}

  // `record` is in `piece`.
  void put(std::span<const std::byte> record, const PerfPiece& piece, Nanoseconds time);
  void end_round();
  void end();

  // Records that were delivered after a younger one.
  uint64_t late() const { return late_; }

 private:
  struct Entry {
    Nanoseconds time = 0;
    uint64_t number = 0;  // in the order of the file
    uint64_t piece = 0;
    std::span<const std::byte> record;
  };
  // A piece, and how many records in it wait.
  struct Held {
    PerfPiece piece;
    size_t waiting = 0;
  };
  void deliver_oldest();
  void deliver_until(Nanoseconds limit);
  void let_go();

  Deliver deliver_;
  size_t most_bytes_;
  std::vector<Entry> waiting_;  // a heap, the oldest first
  std::deque<Held> held_;
  uint64_t first_held_ = 0, last_number_ = 0;
  size_t bytes_ = 0;
  Nanoseconds newest_ = 0, newest_of_round_before_ = 0, delivered_ = 0;
  uint64_t late_ = 0;
};

}  // namespace phlox::importers
