#include "phlox/importers/perf_order.h"

#include <algorithm>
#include <cstring>
#include <limits>

namespace phlox::importers {
namespace {

constexpr size_t kMostSpare = 8;

// std::push_heap() keeps what is "largest" in front: here the oldest.
constexpr auto kLater = [](const auto& a, const auto& b) {
  return a.time != b.time ? a.time > b.time : a.number > b.number;
};

}  // namespace

void PerfOrder::put(std::span<const std::byte> record, Nanoseconds time) {
  if (blocks_.empty() || blocks_.back().bytes.size() - blocks_.back().used < record.size())
    add_block(record.size());
  Block& block = blocks_.back();
  std::memcpy(block.bytes.data() + block.used, record.data(), record.size());
  waiting_.push_back({time, ++last_number_, first_block_ + blocks_.size() - 1,
                      static_cast<uint32_t>(block.used), static_cast<uint32_t>(record.size())});
  std::push_heap(waiting_.begin(), waiting_.end(), kLater);
  block.used += record.size();
  ++block.waiting;
  newest_ = std::max(newest_, time);
  if (bytes_ <= most_bytes_) return;
  // More than fits: the older half goes out, and what comes too late is counted. All of it, where a single
  // old record would keep the memory of many.
  const size_t keep = waiting_.size() / 2;
  while (waiting_.size() > keep) deliver_oldest();
  free_blocks();
  if (bytes_ > most_bytes_) end();
}

void PerfOrder::deliver_oldest() {
  std::pop_heap(waiting_.begin(), waiting_.end(), kLater);
  const Entry entry = waiting_.back();
  waiting_.pop_back();
  Block& block = blocks_[entry.block - first_block_];
  late_ += entry.time < delivered_;
  delivered_ = std::max(delivered_, entry.time);
  deliver_(std::span<const std::byte>(block.bytes).subspan(entry.offset, entry.size), entry.time);
  --block.waiting;
}

// Memory that is used again need not be asked for, nor emptied: a record is at most 64 KiB long.
void PerfOrder::add_block(size_t room) {
  Block& block = blocks_.emplace_back();
  if (!spare_.empty() && spare_.back().size() >= room) {
    block.bytes = std::move(spare_.back());
    spare_.pop_back();
  } else {
    block.bytes.resize(std::max(next_block_, room));
    next_block_ = std::min(next_block_ * 2, kLargestBlock);
  }
  bytes_ += block.bytes.size();
}

void PerfOrder::free_blocks() {
  // The last one may still take records.
  while (blocks_.size() > 1 && blocks_.front().waiting == 0) {
    bytes_ -= blocks_.front().bytes.size();
    if (spare_.size() < kMostSpare) spare_.push_back(std::move(blocks_.front().bytes));
    blocks_.pop_front();
    ++first_block_;
  }
  if (blocks_.size() == 1 && blocks_.front().waiting == 0) blocks_.front().used = 0;
}

void PerfOrder::deliver_until(Nanoseconds limit) {
  while (!waiting_.empty() && waiting_.front().time <= limit) deliver_oldest();
  free_blocks();
}

void PerfOrder::end_round() {
  deliver_until(newest_of_round_before_);
  newest_of_round_before_ = newest_;
}

void PerfOrder::end() {
  deliver_until(std::numeric_limits<Nanoseconds>::max());
}

}  // namespace phlox::importers
