#include "phlox/python/page_memory.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "phlox/base/load.h"

namespace phlox::python {

void PageMemory::forget() {
  remember();
  used_ = places_ = 0;
  if (++generation_ != 0) return;
  index_.clear();  // the generation numbers wrapped around
  generation_ = 1;
}

void PageMemory::forget(uint64_t purpose) {
  forget();
  purpose_ = purpose;
  if (const auto last = asked_for_.find(purpose); last != asked_for_.end()) read_ahead(last->second);
}

// The pages that this purpose asked for.
void PageMemory::remember() {
  const uint64_t purpose = std::exchange(purpose_, 0);
  if (purpose == 0) return;
  if (asked_for_.size() >= kMaxPurposes && !asked_for_.contains(purpose)) asked_for_.clear();
  std::vector<uint64_t>& pages = asked_for_[purpose];
  pages.clear();
  for (const Place& place : index_) {
    if (place.generation == generation_ && place.readable && place.asked_for && pages.size() < kMostAhead)
      pages.push_back(place.number);
  }
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
  Place& known = place_of(number);
  if (known.generation == generation_) {
    known.asked_for = true;
    return known.readable ? known.page->data() : nullptr;
  }
  if (places_ >= kMaxPages) forget();
  if (2 * places_ >= index_.size()) grow();
  return load_page(place_of(number), number);
}

// One of those that hold nothing, `ahead` after the next one.
PageMemory::Page* PageMemory::unused_page(size_t ahead) {
  while (used_ + ahead >= pages_.size()) pages_.push_back(std::make_unique_for_overwrite<Page>());
  return pages_[used_ + ahead].get();
}

const std::byte* PageMemory::load_page(Place& place, uint64_t number) {
  Page* page = unused_page(0);
  const bool readable = source_.read(RemoteAddress(number * kPage), std::span(*page));
  place = {number, generation_, readable, true, page};
  ++places_;
  if (!readable) return nullptr;
  ++used_;
  return page->data();
}

void PageMemory::read_ahead(std::span<const uint64_t> pages) {
  std::vector<memory::Range> ranges;
  while (!pages.empty()) {
    const auto some = pages.first(std::min(pages.size(), memory::RemoteMemory::kMaxRanges));
    pages = pages.subspan(some.size());
    if (places_ + some.size() > kMaxPages) return;
    while (2 * (places_ + some.size()) >= index_.size()) grow();
    ranges.clear();
    for (const uint64_t number : some) {
      if (place_of(number).generation != generation_)
        ranges.push_back({RemoteAddress(number * kPage), std::span(*unused_page(ranges.size()))});
    }
    const size_t whole = ranges.empty() ? 0 : source_.read(ranges);
    for (const memory::Range& range : std::span(ranges).first(whole)) {
      const uint64_t number = range.address.value / kPage;
      place_of(number) = {number, generation_, true, false, unused_page(0)};
      ++places_;
      ++used_;
    }
  }
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
