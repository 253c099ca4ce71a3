#include "phlox/view/callback_functions.h"

#include <algorithm>
#include <cmath>

namespace phlox::view {

using namespace profile;

namespace {

// Fewer samples do not show how often a function is on the stack.
constexpr int64_t kEnoughUsual = 50;

struct StayIn {
  Nanoseconds start = 0;
  int64_t samples = 0;
  size_t last = 0;
};

}  // namespace

void CallbackFunctions::begin() {
  usual_.clear();
  usual_samples_ = 0;
}

void CallbackFunctions::add_usual(const LoopSample& row) {
  if (row.step != LoopStep::turn) return;
  const int64_t samples = profile_.samples()[row.sample].samples;
  usual_samples_ += samples;
  for (const uint32_t function : of(row)) usual_[function] += samples;
}

double CallbackFunctions::usual_share(uint32_t function) const {
  const auto found = usual_.find(function);
  return double((found == usual_.end() ? 0 : found->second) + 1) / double(usual_samples_ + 2);
}

bool CallbackFunctions::stay(const std::vector<LoopSample>& rows, const LoopTurn& turn, Nanoseconds shortest,
                             double chance) {
  if (usual_samples_ < kEnoughUsual) return false;
  std::unordered_map<uint32_t, StayIn> runs;
  size_t at = 0;
  for (size_t i = turn.first; i < turn.last; ++i) {
    const Sample& sample = profile_.samples()[rows[i].sample];
    if (rows[i].step == LoopStep::unread || sample.samples == 0) continue;
    ++at;
    if (rows[i].step != LoopStep::turn) continue;
    for (const uint32_t function : of(rows[i])) {
      StayIn& run = runs[function];
      if (run.last + 1 != at) run = {sample.start, 0, 0};
      run.last = at;
      run.samples += sample.samples;
      if (run.samples >= kFewSamples && sample.start + sample.wall - run.start >= shortest &&
          std::pow(usual_share(function), double(run.samples - 1)) * double(at) < chance)
        return true;
    }
  }
  return false;
}

const std::vector<uint32_t>& CallbackFunctions::of(const LoopSample& row) {
  const StackId stack = profile_.samples()[row.sample].stack;
  const auto [known, is_new] = known_.try_emplace(stack.value);
  std::vector<uint32_t>& functions = known->second;
  if (!is_new) return functions;
  for (StackId at = stack; at && at != row.place.loop && at.value <= profile_.stacks().size();) {
    const Stack& one = profile_.stack(at);
    if (one.frame && one.frame.value <= profile_.frames().size()) {
      const Frame& frame = profile_.frame(one.frame);
      if (frame.kind == FrameKind::python && !is_of_a_library(frame))
        functions.push_back(
            numbers_.try_emplace(function_of(frame), static_cast<uint32_t>(numbers_.size())).first->second);
    }
    at = one.parent < at ? one.parent : StackId();
  }
  std::sort(functions.begin(), functions.end());
  functions.erase(std::unique(functions.begin(), functions.end()), functions.end());
  return functions;
}

}  // namespace phlox::view
