// The bytes behind a conclusion, and their addresses. If they are the same when read again, they held at both
// moments: a conclusion from words of different moments is then one of a single moment, unless every one of
// them changed and changed back.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "phlox/base/address.h"
#include "phlox/memory/remote_memory.h"

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

 private:
  friend std::vector<bool> still_hold(memory::RemoteMemory& memory, std::span<const Evidence> all);
  struct Item {
    RemoteAddress address;
    uint32_t offset = 0;
    uint32_t size = 0;
  };
  std::vector<Item> items_;
  std::vector<std::byte> bytes_;
};

// For each, whether its bytes are still the same. Reads many of them with one call.
std::vector<bool> still_hold(memory::RemoteMemory& memory, std::span<const Evidence> all);

}  // namespace phlox::python
