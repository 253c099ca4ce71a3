#include "phlox/importers/stack_batch.h"

#include <algorithm>

namespace phlox::importers {

void StackBatch::begin(size_t shared) {
  path_.resize(std::min(shared, path_.size()));
  settled_ = std::min(settled_, path_.size());
}

void StackBatch::push(profile::FrameId frame) {
  const Level parent = path_.empty() ? Level() : path_.back();
  const uint32_t round = parent.node == kNone ? 0 : nodes_[parent.node].round + 1;
  const auto node = static_cast<uint32_t>(nodes_.size());
  nodes_.push_back({parent, frame, round, {}});
  if (rounds_.size() <= round) rounds_.resize(round + 1);
  rounds_[round].push_back(node);
  path_.push_back({{}, node});
}

void StackBatch::end() {
  ends_.push_back(path_.empty() ? Level() : path_.back());
}

std::span<const profile::StackId> StackBatch::finish() {
  for (std::vector<uint32_t>& round : rounds_) {
    if (round.empty()) break;
    steps_.clear();
    for (const uint32_t node : round) steps_.push_back({id_of(nodes_[node].parent), nodes_[node].frame});
    ids_.resize(steps_.size());
    interner_.stacks(steps_, ids_);
    for (size_t i = 0; i < round.size(); ++i) nodes_[round[i]].id = ids_[i];
    round.clear();
  }
  ids_.clear();
  for (const Level& end : ends_) ids_.push_back(id_of(end));
  for (; settled_ < path_.size(); ++settled_) path_[settled_] = {id_of(path_[settled_]), kNone};
  nodes_.clear();
  ends_.clear();
  return ids_;
}

}  // namespace phlox::importers
