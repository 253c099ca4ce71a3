#include "phlox/unwind/module_map.h"

#include <algorithm>

namespace phlox::unwind {

void ModuleMap::add(RemoteAddress start, RemoteAddress end, uint64_t bias, uint32_t module) {
  ++generation_;
  if (start < end) entries_.push_back({start.value, end.value, bias, module, {}});
}

void ModuleMap::add_code(RemoteAddress start, RemoteAddress end, const Rule& returned_to) {
  ++generation_;
  if (start < end) entries_.push_back({start.value, end.value, 0, kNoModule, returned_to});
}

void ModuleMap::settle() {
  std::stable_sort(entries_.begin(), entries_.end(),
                   [](const Entry& a, const Entry& b) { return a.start < b.start; });
  uint64_t covered = 0;
  std::erase_if(entries_, [&covered](const Entry& e) {
    if (e.start < covered) return true;
    covered = e.end;
    return false;
  });
}

void ModuleMap::clear() {
  entries_.clear();
  ++generation_;
}

void ModuleMap::set_bias(uint32_t module, uint64_t bias) {
  for (Entry& entry : entries_) {
    if (entry.module == module) entry.bias = bias;
  }
}

const ModuleMap::Entry* ModuleMap::find(RemoteAddress pc) const {
  auto next = std::upper_bound(entries_.begin(), entries_.end(), pc.value,
                               [](uint64_t value, const Entry& e) { return value < e.start; });
  if (next == entries_.begin()) return nullptr;
  --next;
  return pc.value < next->end ? &*next : nullptr;
}

}  // namespace phlox::unwind
