#include "phlox/python/page_memory.h"

#include <algorithm>
#include <bit>
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
  const auto last = asked_for_.find(purpose);
  comes_back_ = last != asked_for_.end();
  if (comes_back_) read_ahead(last->second);
}

// What this purpose asked for.
void PageMemory::remember() {
  const uint64_t purpose = std::exchange(purpose_, 0);
  if (purpose == 0) return;
  if (asked_for_.size() >= kMaxPurposes && !asked_for_.contains(purpose)) asked_for_.clear();
  std::vector<Part>& parts = asked_for_[purpose];
  parts.clear();
  for (const Place& place : index_) {
    if (place.generation == generation_ && place.page != nullptr && place.asked_for != 0 &&
        parts.size() < kMostAhead)
      parts.push_back({place.number, place.asked_for});
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

// Also those behind: the rest of an object is often read next.
PageMemory::Blocks PageMemory::with_next(Blocks blocks) {
  return static_cast<Blocks>(blocks | blocks << 1 | blocks << 2 | blocks << 3);
}

const std::byte* PageMemory::page(uint64_t number, Blocks blocks) {
  if (index_.empty()) grow();
  Place& known = place_of(number);
  if (known.generation != generation_) {
    if (places_ >= kMaxPages) forget();
    if (2 * places_ >= index_.size()) grow();
    return load_page(place_of(number), number, blocks);
  }
  if (known.page == nullptr) return nullptr;
  if ((blocks & ~known.known) != 0) {
    const Blocks wanted = with_next(blocks);
    if (!read_blocks(number, *known.page, wanted)) return nullptr;
    known.known |= wanted;
  }
  known.asked_for |= blocks;
  return known.page->data();
}

PageMemory::Page* PageMemory::unused_page() {
  if (used_ == pages_.size()) pages_.push_back(std::make_unique_for_overwrite<Page>());
  return pages_[used_].get();
}

// The range of neighbouring blocks.
memory::Range PageMemory::range_of(uint64_t number, Page& page, Blocks blocks) {
  const auto first = static_cast<size_t>(std::countr_zero(blocks)) * kBlock;
  const auto size = static_cast<size_t>(std::popcount(blocks)) * kBlock;
  return {RemoteAddress(number * kPage + first), std::span(page).subspan(first, size)};
}

// `blocks` are neighbours.
bool PageMemory::read_blocks(uint64_t number, Page& page, Blocks blocks) {
  const memory::Range range = range_of(number, page, blocks);
  return source_.read(range.address, range.into);
}

const std::byte* PageMemory::load_page(Place& place, uint64_t number, Blocks blocks) {
  Page* page = unused_page();
  const Blocks wanted = comes_back_ ? with_next(blocks) : blocks_of(0, kPage - 1);
  const bool readable = read_blocks(number, *page, wanted);
  place = {number, generation_, wanted, blocks, readable ? page : nullptr};
  ++places_;
  if (!readable) return nullptr;
  ++used_;
  return page->data();
}

void PageMemory::read_ahead(std::span<const Part> parts) {
  std::vector<memory::Range> ranges;
  std::vector<Part> runs;  // one for each range
  const auto read = [&] {
    const size_t whole = ranges.empty() ? 0 : source_.read(ranges);
    for (const Part& run : std::span(runs).first(whole)) place_of(run.page).known |= run.blocks;
    ranges.clear();
    runs.clear();
  };
  for (const Part& part : parts) {
    if (places_ >= kMaxPages) break;
    while (2 * (places_ + 1) >= index_.size()) grow();
    Place& place = place_of(part.page);
    if (place.generation == generation_) continue;
    place = {part.page, generation_, 0, 0, unused_page()};
    ++places_;
    ++used_;
    for (unsigned left = part.blocks; left != 0;) {
      const unsigned first = left & -left;
      const auto run = static_cast<Blocks>(left & ~(left + first));  // up to the first that is not wanted
      left &= ~run;
      if (ranges.size() == memory::RemoteMemory::kMaxRanges) read();
      ranges.push_back(range_of(part.page, *place.page, run));
      runs.push_back({part.page, run});
    }
  }
  read();
}

bool PageMemory::copy(RemoteAddress address, std::span<std::byte> into) {
  if (address.value + into.size() < address.value || into.size() > kMaxSize) return false;
  for (size_t done = 0; done < into.size();) {
    const uint64_t at = address.value + done;
    const size_t size = std::min<uint64_t>(kPage - at % kPage, into.size() - done);
    const std::byte* bytes = page(at / kPage, blocks_of(at % kPage, at % kPage + size - 1));
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
  const uint64_t first = address.value % kPage, some = std::max<uint64_t>(size, 1);
  if (some <= kPage - first) {
    const std::byte* bytes = page(address.value / kPage, blocks_of(first, first + some - 1));
    return bytes == nullptr ? nullptr : bytes + first;
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
