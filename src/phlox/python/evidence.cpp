#include "phlox/python/evidence.h"

#include <algorithm>
#include <cstring>

namespace phlox::python {

bool Evidence::holds(PageMemory& memory) const {
  return std::all_of(items_.begin(), items_.end(), [&](const Item& item) {
    const std::byte* now = memory.find(item.address, item.size);
    return now != nullptr && std::memcmp(now, bytes_.data() + item.offset, item.size) == 0;
  });
}

}  // namespace phlox::python
