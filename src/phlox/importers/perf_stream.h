// The records of a perf.data one after the other, in the order of the file: compressed ones are unpacked,
// hardware traces skipped. Uses as much memory as one piece of the file and one compressed record.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "phlox/importers/input.h"
#include "phlox/importers/perf_file.h"
#include "phlox/importers/perf_piece.h"

namespace phlox::importers {

// Types of records that perf record adds to those of the kernel.
inline constexpr uint32_t kFinishedRound = 68;

class PerfStream {
 public:
  // `input` and `file` must outlive it.
  PerfStream(Input& input, PerfFile& file);
  ~PerfStream();
  PerfStream(const PerfStream&) = delete;
  PerfStream& operator=(const PerfStream&) = delete;

  // The next record, its header included, valid until the next call, or as long as its piece is kept; empty
  // at the end. Records about the file (pipes) are consumed on the way.
  std::span<const std::byte> next();
  // The piece that contains this record.
  const PerfPiece& piece() const { return was_packed_ ? unpacked_ : piece_; }

  // Known at the end.
  uint64_t unread() const { return unread_; }            // bytes after an invalid record, or a truncated one
  uint64_t damaged() const { return damaged_; }          // compressed records that could not be unpacked
  bool cut() const { return cut_; }                      // the file ends inside a record
  uint64_t compressed() const { return compressed_; }    // records
  uint64_t trace_bytes() const { return trace_bytes_; }  // of hardware traces, passed over

 private:
  struct Unpacker;
  std::span<const std::byte> from_file();
  std::span<const std::byte> from_unpacked();
  std::span<const std::byte> bytes_at(uint64_t offset, size_t size);
  void unpack(std::span<const std::byte> packed);
  void pass_over(std::span<const std::byte> record);

  Input& input_;
  PerfFile& file_;
  uint64_t at_ = 0;
  PerfPieces pieces_;
  PerfPiece piece_;  // of the file, from piece_at_ on
  uint64_t piece_at_ = 0;
  std::unique_ptr<Unpacker> unpacker_;
  PerfPiece unpacked_;  // the part to be read, from `at` to `end`
  size_t unpacked_at_ = 0, unpacked_end_ = 0;
  bool was_packed_ = false;
  uint64_t unread_ = 0, damaged_ = 0, compressed_ = 0, trace_bytes_ = 0;
  bool cut_ = false, ended_ = false;
};

}  // namespace phlox::importers
