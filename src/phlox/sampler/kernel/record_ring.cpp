#include "phlox/sampler/kernel/record_ring.h"

#include <linux/bpf.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>

namespace phlox::sampler {
namespace {

size_t page() {
  return static_cast<size_t>(::sysconf(_SC_PAGESIZE));
}

template <class Word>
Word load(std::byte* at) {
  return std::atomic_ref(*reinterpret_cast<Word*>(at)).load(std::memory_order_acquire);
}

}  // namespace

bool RecordRing::map(int map, size_t bytes) {
  void* ours = ::mmap(nullptr, page(), PROT_READ | PROT_WRITE, MAP_SHARED, map, 0);
  if (ours == MAP_FAILED) return false;
  ours_ = static_cast<std::byte*>(ours);
  size_ = bytes;
  void* theirs = ::mmap(nullptr, page() + size_, PROT_READ, MAP_SHARED, map, static_cast<off_t>(page()));
  if (theirs == MAP_FAILED) return false;
  theirs_ = static_cast<std::byte*>(theirs);
  return true;
}

RecordRing::~RecordRing() {
  if (ours_ != nullptr) ::munmap(ours_, page());
  if (theirs_ != nullptr) ::munmap(theirs_, page() + size_);
}

std::span<const std::byte> RecordRing::bytes_at(uint64_t position, size_t size) {
  const std::byte* data = theirs_ + page();
  const size_t from = static_cast<size_t>(position) & (size_ - 1), first = std::min(size, size_ - from);
  if (first == size) return {data + from, size};
  whole_.resize(size);
  std::memcpy(whole_.data(), data + from, first);
  std::memcpy(whole_.data() + first, data, size - first);
  return whole_;
}

// Each record has a head of eight bytes before it, whose first four are its length and two flags. Heads begin
// at multiples of eight, so none is in two pieces (kernel/bpf/ringbuf.c).
std::optional<std::span<const std::byte>> RecordRing::next() {
  for (next_ = load<uint64_t>(ours_); next_ < load<uint64_t>(theirs_); drop()) {
    const uint64_t at = next_;
    const auto head = load<uint32_t>(theirs_ + page() + (at & (size_ - 1)));
    if ((head & BPF_RINGBUF_BUSY_BIT) != 0) return {};
    const size_t size = std::min<size_t>(head & ~BPF_RINGBUF_DISCARD_BIT, size_ - BPF_RINGBUF_HDR_SZ);
    next_ = (at + BPF_RINGBUF_HDR_SZ + size + 7) & ~uint64_t{7};
    if ((head & BPF_RINGBUF_DISCARD_BIT) == 0) return bytes_at(at + BPF_RINGBUF_HDR_SZ, size);
  }
  return {};
}

void RecordRing::drop() {
  std::atomic_ref(*reinterpret_cast<uint64_t*>(ours_)).store(next_, std::memory_order_release);
}

}  // namespace phlox::sampler
