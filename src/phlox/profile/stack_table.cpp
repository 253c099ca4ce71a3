#include "phlox/profile/stack_table.h"

#include "phlox/base/spread.h"

namespace phlox::profile {
namespace {

constexpr size_t kFirstSlots = 64;

uint64_t key_of(StackId parent, FrameId frame) {
  return uint64_t{parent.value} << 32 | frame.value;
}
// The low bits select the slot.
uint32_t tag_of(uint64_t key) {
  return static_cast<uint32_t>(Spread{}(key) >> 32) & ~StackTable::kMost;
}

}  // namespace

size_t StackTable::place_of(uint64_t key) const {
  const size_t mask = slots_.size() - 1;
  const uint32_t tag = tag_of(key);
  for (size_t at = Spread{}(key)&mask;; at = (at + 1) & mask) {
    const uint32_t slot = slots_[at];
    if (slot == 0 || ((slot & ~kMost) == tag && keys_[(slot & kMost) - 1] == key)) return at;
  }
}

void StackTable::grow() {
  const size_t count = slots_.empty() ? kFirstSlots : slots_.size() * 2;
  slots_ = {};  // free the old ones first: both together would set the peak memory
  slots_.resize(count);
  uint32_t number = 0;
  for (const uint64_t key : keys_) {
    size_t at = Spread{}(key) & (count - 1);
    while (slots_[at] != 0) at = (at + 1) & (count - 1);
    slots_[at] = tag_of(key) | ++number;
  }
}

StackId StackTable::find(StackId parent, FrameId frame) const {
  return slots_.empty() ? StackId() : StackId(slots_[place_of(key_of(parent, frame))] & kMost);
}

void StackTable::prefetch(StackId parent, FrameId frame) const {
  if (!slots_.empty()) __builtin_prefetch(&slots_[Spread{}(key_of(parent, frame)) & (slots_.size() - 1)]);
}

void StackTable::prefetch_key(StackId parent, FrameId frame) const {
  if (slots_.empty()) return;
  const uint64_t key = key_of(parent, frame);
  const uint32_t slot = slots_[Spread{}(key) & (slots_.size() - 1)];
  if (slot != 0 && (slot & ~kMost) == tag_of(key)) __builtin_prefetch(&keys_[(slot & kMost) - 1]);
}

std::pair<StackId, bool> StackTable::add(StackId parent, FrameId frame) {
  if (keys_.size() * 2 >= slots_.size()) grow();
  const uint64_t key = key_of(parent, frame);
  uint32_t& slot = slots_[place_of(key)];
  const bool fresh = slot == 0;
  if (fresh) {
    keys_.push_back(key);
    slot = tag_of(key) | size();
  }
  return {StackId(slot & kMost), fresh};
}

}  // namespace phlox::profile
