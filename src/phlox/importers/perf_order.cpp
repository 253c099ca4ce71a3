#include "phlox/importers/perf_order.h"

#include <algorithm>
#include <limits>

namespace phlox::importers {
namespace {

// std::push_heap() keeps the "largest" in front: here the oldest.
constexpr auto kLater = [](const auto& a, const auto& b) {
  return a.time != b.time ? a.time > b.time : a.number > b.number;
};

}  // namespace

void PerfOrder::put(std::span<const std::byte> record, const PerfPiece& piece, Nanoseconds time) {
  if (held_.empty() || held_.back().piece != piece) {
    held_.push_back({piece, 0});
    bytes_ += piece->size();
  }
  waiting_.push_back({time, ++last_number_, first_held_ + held_.size() - 1, record});
  std::push_heap(waiting_.begin(), waiting_.end(), kLater);
  ++held_.back().waiting;
  newest_ = std::max(newest_, time);
  if (bytes_ <= most_bytes_) return;
  // Too much is waiting: the older half is delivered, and records that come too late are counted. Everything
  // is delivered if a single old record would keep the memory of many.
  const size_t keep = waiting_.size() / 2;
  while (waiting_.size() > keep) deliver_oldest();
  let_go();
  if (bytes_ > most_bytes_) end();
}

void PerfOrder::deliver_oldest() {
  std::pop_heap(waiting_.begin(), waiting_.end(), kLater);
  const Entry entry = waiting_.back();
  waiting_.pop_back();
  late_ += entry.time < delivered_;
  delivered_ = std::max(delivered_, entry.time);
  deliver_(entry.record, entry.time);
  --held_[entry.piece - first_held_].waiting;
}

void PerfOrder::let_go() {
  while (!held_.empty() && held_.front().waiting == 0) {
    bytes_ -= held_.front().piece->size();
    held_.pop_front();
    ++first_held_;
  }
}

void PerfOrder::deliver_until(Nanoseconds limit) {
  while (!waiting_.empty() && waiting_.front().time <= limit) deliver_oldest();
  let_go();
}

void PerfOrder::end_round() {
  deliver_until(newest_of_round_before_);
  newest_of_round_before_ = newest_;
}

void PerfOrder::end() {
  deliver_until(std::numeric_limits<Nanoseconds>::max());
}

}  // namespace phlox::importers
