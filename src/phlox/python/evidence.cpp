#include "phlox/python/evidence.h"

#include <algorithm>
#include <cstring>

namespace phlox::python {

void Evidence::add_parts(std::vector<PageMemory::Part>& parts) const {
  constexpr uint64_t kPage = PageMemory::kPage;
  for (const Item& item : items_) {
    uint64_t first = item.address.value % kPage, page = item.address.value / kPage;
    for (uint64_t left = item.size; left > 0; ++page, first = 0) {
      const uint64_t size = std::min(left, kPage - first);
      if (parts.empty() || parts.back().page != page) parts.push_back({page, 0});
      parts.back().blocks |= PageMemory::blocks_of(first, first + size - 1);
      left -= size;
    }
  }
}

bool Evidence::holds(PageMemory& memory) const {
  return std::all_of(items_.begin(), items_.end(), [&](const Item& item) {
    const std::byte* now = memory.find(item.address, item.size);
    return now != nullptr && std::memcmp(now, bytes_.data() + item.offset, item.size) == 0;
  });
}

}  // namespace phlox::python
