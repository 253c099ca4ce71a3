// From the sampler thread to the consumer: a bounded queue of records for one writer and one reader that
// never blocks and never allocates. A record that does not fit is refused, and the writer counts it as lost.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>

namespace phlox::sampler {

class Ring {
 public:
  // A power of two.
  explicit Ring(size_t capacity) : capacity_(capacity), bytes_(new std::byte[capacity]) {}

  // A record is the concatenation of its parts; false when there is no room.
  bool push(std::span<const std::byte> head, std::span<const std::byte> body,
            std::span<const std::byte> tail = {}) {
    const size_t size = align(sizeof(uint64_t) + head.size() + body.size() + tail.size());
    const uint64_t written = written_.load(std::memory_order_relaxed);
    if (size > capacity_ - (written - read_.load(std::memory_order_acquire))) return false;
    const uint64_t length = head.size() + body.size() + tail.size();
    put(written, std::as_bytes(std::span(&length, 1)));
    put(written + sizeof(uint64_t), head);
    put(written + sizeof(uint64_t) + head.size(), body);
    put(written + sizeof(uint64_t) + head.size() + body.size(), tail);
    written_.store(written + size, std::memory_order_release);
    return true;
  }

  // Copies the oldest record into `record` (resized by the container) and removes it; false when empty.
  template <class Container>
  bool pop(Container& record) {
    const uint64_t read = read_.load(std::memory_order_relaxed);
    if (read == written_.load(std::memory_order_acquire)) return false;
    uint64_t length = 0;
    get(read, std::as_writable_bytes(std::span(&length, 1)));
    record.resize(length);
    get(read + sizeof(uint64_t), std::span(record.data(), length));
    read_.store(read + align(sizeof(uint64_t) + length), std::memory_order_release);
    return true;
  }

 private:
  static size_t align(size_t n) { return (n + 7) & ~size_t{7}; }
  void put(uint64_t at, std::span<const std::byte> part) {
    if (part.empty()) return;
    const size_t offset = at & (capacity_ - 1);
    const size_t first = part.size() < capacity_ - offset ? part.size() : capacity_ - offset;
    std::memcpy(bytes_.get() + offset, part.data(), first);
    if (first < part.size()) std::memcpy(bytes_.get(), part.data() + first, part.size() - first);
  }
  void get(uint64_t at, std::span<std::byte> part) const {
    if (part.empty()) return;
    const size_t offset = at & (capacity_ - 1);
    const size_t first = part.size() < capacity_ - offset ? part.size() : capacity_ - offset;
    std::memcpy(part.data(), bytes_.get() + offset, first);
    if (first < part.size()) std::memcpy(part.data() + first, bytes_.get(), part.size() - first);
  }

  const size_t capacity_;
  std::unique_ptr<std::byte[]> bytes_;
  alignas(64) std::atomic<uint64_t> written_{0};
  alignas(64) std::atomic<uint64_t> read_{0};
};

}  // namespace phlox::sampler
