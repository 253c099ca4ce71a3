// The bytes behind a conclusion, and their addresses. If they are the same when read again, they held at both
// moments: a conclusion from words of different moments is then one of a single moment, unless every one of
// them changed and changed back.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "phlox/base/address.h"
#include "phlox/python/page_memory.h"

namespace phlox::python {

class Evidence {
 public:
  void add(RemoteAddress address, std::span<const std::byte> bytes) {
    items_.push_back({address, static_cast<uint32_t>(bytes_.size()), static_cast<uint32_t>(bytes.size())});
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
  }
  void clear() {
    items_.clear();
    bytes_.clear();
  }
  size_t size() const { return bytes_.size() + items_.size() * sizeof(Item); }
  // Adds what holds() reads (PageMemory::read_ahead); the same page more than once.
  void add_parts(std::vector<PageMemory::Part>& parts) const;
  // Whether all bytes are the same in `memory`, which has forgotten what was read before.
  bool holds(PageMemory& memory) const;

 private:
  struct Item {
    RemoteAddress address;
    uint32_t offset = 0;
    uint32_t size = 0;
  };
  std::vector<Item> items_;
  std::vector<std::byte> bytes_;
};

}  // namespace phlox::python
