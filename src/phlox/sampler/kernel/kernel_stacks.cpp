#include "phlox/sampler/kernel/kernel_stacks.h"

#include <algorithm>
#include <memory>

#include "phlox/base/load.h"

namespace phlox::sampler {
namespace {

// The maximum numbers of stacks and of their frames that are kept; after that, all are sent again.
constexpr size_t kMostStacks = 200'000, kMostKept = size_t{4} << 20;
// A code object is forgotten this long after another was met at its address: a record may still be underway.
constexpr Nanoseconds kForgetAfter = 2 * kSecond;
// Per second.
constexpr int kMostBrought = 200;

const std::vector<CodeLocation> kEmptyFrames;

}  // namespace

const std::vector<CodeLocation> KernelStacks::kFramesNotRead{{kNotRead, 0}};
const std::vector<CodeLocation> KernelStacks::kWaitNotWalked{{kNotWalked, 0}};

void KernelStacks::take(const KernelCode& record) {
  KnownCode& known = codes_[record.code.serial];
  known.address = record.code.address;
  const auto words = record.bytes.first(std::min<size_t>(record.bytes.size(), KERNEL_STRUCT_BYTES));
  for (const auto& [part, field] : {std::pair{0, layout_.code.name}, {2, layout_.code.filename}}) {
    if (record.code.part[part].address == 0 && words.size() >= *field + 8)
      bring_in(load<uint64_t>(words, *field));
  }
  Handed handed{capture_of(layout_, record), nullptr};
  if (handed.code == nullptr) return;
  CodeRecord out;
  out.code = record.code.serial;
  const Nanoseconds now = clock_now();
  const auto [at, fresh] = at_address_.try_emplace(record.code.address, out.code);
  if (!fresh) retired_.emplace_back(now, std::exchange(at->second, out.code));
  const bool retires = !retired_.empty() && now - retired_.front().first >= kForgetAfter;
  if (retires) out.retired = retired_.front().second;
  if (!ring_.push_with(handed, out)) return;
  known.sent = true;
  if (!retires) return;
  codes_.erase(out.retired);
  retired_.pop_front();
}

void KernelStacks::bring_in(uint64_t address) {
  if (const Nanoseconds now = clock_now(); now - brought_since_ > kSecond) {
    brought_since_ = now;
    brought_ = 0;
  }
  if (address == 0 || ++brought_ > kMostBrought) return;
  uint64_t word = 0;
  memory_.read_value(RemoteAddress(address), word);
  memory_.read_value(RemoteAddress(address + KERNEL_STRUCT_BYTES), word);
}

void KernelStacks::keep(const KernelSample& record) {
  if (stacks_.size() >= kMostStacks || kept_ >= kMostKept) {
    renew_();
    stacks_.clear();
    kept_ = 0;
  }
  const kernel_stack& stack = record.sample.stack;
  std::vector<CodeLocation>& kept = stacks_[stack.hash];
  kept_ -= std::min(kept_, kept.size());
  kept.clear();
  if (stack.end == KERNEL_END_FULL) kept.push_back({kFramesLeftOut, 0});
  if (stack.end == KERNEL_END_DETACHED) kept.push_back({kCallersUnknown, 0});
  for (size_t i = stack.count; i-- > 0;) {
    if (stack.left_out > 0 && i + 1 == KERNEL_MAX_FRAMES / 2)
      kept.push_back({kFramesLeftOut, static_cast<int32_t>(stack.left_out)});
    const KernelFrame frame = record.frame(i);
    const auto code = codes_.find(frame.serial);
    if (frame.serial == 0 || code == codes_.end() || !code->second.sent) {
      kept.push_back({kNotRead, 0});
      ++not_read_;
    } else {
      kept.push_back({frame.serial, instruction_of(layout_, code->second.address, frame.instruction)});
    }
  }
  kept_ += kept.size();
}

const std::vector<CodeLocation>& KernelStacks::of(const KernelSample& record) {
  if ((record.sample.stack.flags & KERNEL_NOT_WALKED) != 0) return kWaitNotWalked;
  if (record.sample.stack.count == 0) return kEmptyFrames;
  if (const auto* found = find(record.sample.stack.hash)) return *found;
  // There was no room for the record with its frames.
  not_read_ += record.sample.stack.count;
  return kFramesNotRead;
}

const std::vector<CodeLocation>* KernelStacks::find(uint64_t hash) const {
  const auto found = stacks_.find(hash);
  return found == stacks_.end() ? nullptr : &found->second;
}

}  // namespace phlox::sampler
