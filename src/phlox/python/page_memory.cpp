#include "phlox/python/page_memory.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "phlox/base/load.h"

namespace phlox::python {

void PageMemory::forget() {
  used_ = places_ = 0;
  if (++generation_ != 0) return;
  index_.clear();  // the generation numbers wrapped around
  generation_ = 1;
}

// The place of a page, or the one where it belongs.
PageMemory::Place& PageMemory::place_of(uint64_t number) {
  constexpr uint64_t kSpread = 0x9e3779b97f4a7c15;  // 2^64 divided by the golden ratio
  for (size_t at = number * kSpread >> 40;; ++at) {
    Place& place = index_[at & (index_.size() - 1)];
    if (place.generation != generation_ || place.number == number) return place;
  }
}

void PageMemory::grow() {
  constexpr size_t kFirst = 64;  // enough where there are no tasks
  static_assert((kFirst & (kFirst - 1)) == 0);
  const std::vector<Place> before =
      std::exchange(index_, std::vector<Place>(std::max(2 * index_.size(), kFirst)));
  for (const Place& place : before) {
    if (place.generation == generation_) place_of(place.number) = place;
  }
}

const std::byte* PageMemory::page(uint64_t number) {
  if (index_.empty()) grow();
  const Place& known = place_of(number);
  if (known.generation == generation_) return known.readable ? known.page->data() : nullptr;
  if (places_ >= kMaxPages) forget();
  if (2 * places_ >= index_.size()) grow();
  return load_page(place_of(number), number);
}

const std::byte* PageMemory::load_page(Place& place, uint64_t number) {
  if (used_ == pages_.size()) pages_.push_back(std::make_unique_for_overwrite<Page>());
  Page* page = pages_[used_].get();
  const bool readable = source_.read(RemoteAddress(number * kPage), std::span(*page));
  place = {number, generation_, readable, page};
  ++places_;
  if (!readable) return nullptr;
  ++used_;
  return page->data();
}

bool PageMemory::copy(RemoteAddress address, std::span<std::byte> into) {
  if (address.value + into.size() < address.value || into.size() > kMaxSize) return false;
  for (size_t done = 0; done < into.size();) {
    const uint64_t at = address.value + done;
    const size_t size = std::min<uint64_t>(kPage - at % kPage, into.size() - done);
    const std::byte* bytes = page(at / kPage);
    if (bytes == nullptr) return false;
    std::memcpy(into.data() + done, bytes + at % kPage, size);
    done += size;
  }
  return true;
}

size_t PageMemory::read(std::span<const memory::Range> ranges) {
  size_t whole = 0;
  while (whole < ranges.size() && copy(ranges[whole].address, ranges[whole].into)) ++whole;
  return whole;
}

const std::byte* PageMemory::find(RemoteAddress address, size_t size) {
  if (address.value % kPage + size <= kPage) {
    const std::byte* bytes = page(address.value / kPage);
    return bytes == nullptr ? nullptr : bytes + address.value % kPage;
  }
  if (size > kMaxSize) return nullptr;
  scratch_.resize(size);
  return copy(address, std::span(scratch_)) ? scratch_.data() : nullptr;
}

RemoteAddress PageMemory::word(RemoteAddress at) {
  const std::byte* bytes = is_plausible(at) ? find(at, 8) : nullptr;
  return RemoteAddress(bytes == nullptr ? 0 : load<uint64_t>(bytes));
}

}  // namespace phlox::python
