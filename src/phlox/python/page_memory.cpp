#include "phlox/python/page_memory.h"

#include <algorithm>
#include <cstring>

#include "phlox/base/load.h"

namespace phlox::python {

const std::byte* PageMemory::page(uint64_t number) {
  if (const auto known = pages_.find(number); known != pages_.end())
    return known->second ? known->second->data() : nullptr;
  if (pages_.size() >= kMaxPages) pages_.clear();
  auto bytes = std::make_unique<Page>();
  if (!source_.read(RemoteAddress(number * kPage), std::span(*bytes))) bytes.reset();
  const auto& kept = pages_[number] = std::move(bytes);
  return kept ? kept->data() : nullptr;
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
