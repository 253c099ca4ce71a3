// Reads the ring in which the program in the kernel leaves its records (BPF_MAP_TYPE_RINGBUF). Maps its bytes
// once; libbpf maps them twice, so that no record is in two pieces, and the kernel counts both as our memory.
// Here the rare record in two pieces is copied.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace phlox::sampler {

class RecordRing {
 public:
  RecordRing() = default;
  RecordRing(const RecordRing&) = delete;
  RecordRing& operator=(const RecordRing&) = delete;
  ~RecordRing();

  // `map`: the ring's descriptor. `bytes`: its size, a power of two. False: see errno.
  bool map(int map, size_t bytes);

  // Calls `take` with each complete record, until it returns false. Returns whether it did.
  template <class Take>
  bool consume(Take take) {
    while (const auto record = next()) {
      const bool more = take(*record);
      drop();
      if (!more) return true;
    }
    return false;
  }

 private:
  // The next complete record, and its removal.
  std::optional<std::span<const std::byte>> next();
  void drop();
  std::span<const std::byte> bytes_at(uint64_t position, size_t size);

  size_t size_ = 0;
  std::byte* ours_ = nullptr;     // the page that says how far we have read
  std::byte* theirs_ = nullptr;   // the page that says how far the kernel has written; the bytes follow it
  uint64_t next_ = 0;             // the position after the last next()
  std::vector<std::byte> whole_;  // a record that was in two pieces
};

}  // namespace phlox::sampler
