#include "phlox/unwind/unwind_table.h"

#include <algorithm>
#include <limits>

namespace phlox::unwind {

Rule UnwindTable::find(ImageAddress pc) const {
  const uint64_t offset = pc.value - base_.value;
  if (pc < base_ || offsets_.empty() || offset > std::numeric_limits<uint32_t>::max()) return {};
  const auto next = std::upper_bound(offsets_.begin(), offsets_.end(), static_cast<uint32_t>(offset));
  if (next == offsets_.begin()) return {};
  return rules_[ids_[static_cast<size_t>(next - offsets_.begin()) - 1]];
}

std::pair<ImageAddress, ImageAddress> UnwindTable::gap(ImageAddress pc) const {
  const ImageAddress last(~uint64_t{0});
  const uint64_t offset = pc.value - base_.value;
  if (offsets_.empty()) return {ImageAddress(0), last};
  if (pc < base_ || offset < offsets_.front()) return {ImageAddress(0), row_start(0)};
  // Otherwise the last row's rule would hold for all addresses after it.
  const bool beyond = offset > std::numeric_limits<uint32_t>::max();
  auto at = beyond ? offsets_.end()
                   : std::upper_bound(offsets_.begin(), offsets_.end(), static_cast<uint32_t>(offset));
  size_t i = static_cast<size_t>(at - offsets_.begin()) - 1, end = i + 1;
  if (row_rule(i).kind != RuleKind::none) return {pc, pc};
  while (i > 0 && row_rule(i - 1).kind == RuleKind::none) --i;
  while (end < row_count() && row_rule(end).kind == RuleKind::none) ++end;
  return {i == 0 ? ImageAddress(0) : row_start(i), end == row_count() ? last : row_start(end)};
}

size_t UnwindTable::byte_size() const {
  return offsets_.size() * sizeof(uint32_t) + ids_.size() * sizeof(uint16_t) + rules_.size() * sizeof(Rule);
}

}  // namespace phlox::unwind
