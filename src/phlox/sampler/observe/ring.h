// From capture to the consumer: a bounded queue of records for one writer (the worker that holds the turn
// lock) and one reader (the recorder's thread) that never blocks. A record that does not fit is refused, and
// the writer counts it as lost. A record is contiguous, so its reader uses it in place and copies nothing.
// Objects that own memory travel beside it (handover.h).
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>

#include "phlox/sampler/observe/handover.h"

namespace phlox::sampler {

class Ring {
 public:
  // Queued code objects: some ten thousand ordinary ones, far more than are new in a tenth of a second.
  static constexpr size_t kMostAside = size_t{32} << 20;

  // A power of two; a larger one has a further kNear bytes.
  explicit Ring(size_t capacity) : near_(std::min(capacity, kNear)), far_(capacity > kNear ? capacity : 0) {}

  // A record is the concatenation of its parts, each a span of bytes; false when there is no room.
  template <class... Parts>
  bool push(const Parts&... parts) {
    // Never before the contents of the far one.
    return (far_.empty() && near_.push(parts...)) || far_.push(parts...);
  }

  // The same for a record that hands over an object, which the caller still has if there is no room.
  template <class Record>
  bool push_with(Handed& handed, const Record& record) {
    return handover_.put(handed, [&] { return push(std::as_bytes(std::span(&record, 1))); });
  }

  // The oldest record, until pop(); no data() when there is none.
  std::span<const std::byte> front() {
    auto record = near_.front();
    last_ = &near_;
    if (record.data() != nullptr || far_.empty()) return record;
    // While the far one has records, nothing is put into the near one: its contents are older.
    record = near_.front();
    if (record.data() != nullptr) return record;
    last_ = &far_;
    return far_.front();
  }
  // Removes the record of front().
  void pop() { last_->pop(); }

  // What the record of front() hands over. Call it once for each that does.
  Handed take_handed() { return handover_.take(); }

  // The size of waiting records, and of the objects that they hand over.
  size_t waiting() const { return near_.waiting() + far_.waiting() + handover_.bytes(); }

 private:
  // A ring in one piece of memory.
  class Part {
   public:
    explicit Part(size_t capacity) : capacity_(capacity), bytes_(new std::byte[capacity]) {}

    bool empty() const { return waiting() == 0; }
    size_t waiting() const {
      const uint64_t read = read_.load(std::memory_order_acquire);
      return written_.load(std::memory_order_acquire) - read;
    }
    template <class... Parts>
    bool push(const Parts&... parts) {
      const uint64_t length = (uint64_t{0} + ... + parts.size());
      const uint64_t size = align(sizeof length + length);
      uint64_t at = written_.load(std::memory_order_relaxed);
      const uint64_t waiting = at - read_.load(std::memory_order_acquire);
      // An empty one is filled from its start again, so it takes only as much memory as waited at once. The
      // reader reads this only after a record was written.
      if (waiting == 0) start_.store(at, std::memory_order_relaxed);
      const uint64_t to_end = to_end_from(at);
      const uint64_t skipped = size > to_end ? to_end : 0;
      if (size + skipped > capacity_ - waiting) return false;
      if (skipped != 0) std::memcpy(bytes_at(at), &kGoesOnAtTheStart, sizeof kGoesOnAtTheStart);
      at += skipped;
      std::byte* into = bytes_at(at);
      const auto put = [&into](const void* from, size_t bytes) {
        if (bytes != 0) std::memcpy(into, from, bytes);
        into += bytes;
      };
      put(&length, sizeof length);
      (put(parts.data(), parts.size()), ...);
      written_.store(at + size, std::memory_order_release);
      return true;
    }
    std::span<const std::byte> front() {
      uint64_t read = read_.load(std::memory_order_relaxed);
      if (read == written_.load(std::memory_order_acquire)) return {};
      uint64_t length = length_at(read);
      if (length == kGoesOnAtTheStart) {
        read += to_end_from(read);
        read_.store(read, std::memory_order_release);
        length = length_at(read);
      }
      return {bytes_at(read) + sizeof length, length};
    }
    void pop() {
      const uint64_t read = read_.load(std::memory_order_relaxed);
      read_.store(read + align(sizeof(uint64_t) + length_at(read)), std::memory_order_release);
    }

   private:
    // In place of a length.
    static constexpr uint64_t kGoesOnAtTheStart = ~uint64_t{0};
    static uint64_t align(uint64_t n) { return (n + 7) & ~uint64_t{7}; }
    uint64_t place_of(uint64_t at) const {
      return (at - start_.load(std::memory_order_relaxed)) & (capacity_ - 1);
    }
    uint64_t to_end_from(uint64_t at) const { return capacity_ - place_of(at); }
    std::byte* bytes_at(uint64_t at) { return bytes_.get() + place_of(at); }
    uint64_t length_at(uint64_t at) {
      uint64_t length = 0;
      std::memcpy(&length, bytes_at(at), sizeof length);
      return length;
    }

    const size_t capacity_;
    std::unique_ptr<std::byte[]> bytes_;
    alignas(64) std::atomic<uint64_t> written_{0};
    std::atomic<uint64_t> start_{0};  // the position at the start of the memory
    alignas(64) std::atomic<uint64_t> read_{0};
  };

  // Memory that is used again and again stays in the CPU's caches: with 10 KB a record, going round 16 MB
  // costs 6 us more for each record. The far one is for a reader that is late.
  static constexpr size_t kNear = 512 * 1024;
  Part near_, far_;
  Handover handover_{kMostAside};
  Part* last_ = nullptr;  // front() returned its record
};

}  // namespace phlox::sampler
