#include "phlox/view/awaiters.h"

#include <tsl/robin_map.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "phlox/base/spread.h"
#include "phlox/view/loop_stacks.h"
#include "phlox/view/task_endpoints.h"

namespace phlox::view {

using namespace profile;

namespace {

// A damaged or hostile file may have more. Without a limit its stacks would be multiplied.
constexpr size_t kMostFrames = 1000, kMostAdded = 1'000'000;

// How often censuses saw tasks of one coroutine, and with which awaiters: their frames, outermost first.
struct SeenAwaiters {
  uint64_t all = 0, with_awaiter = 0;
  std::vector<std::vector<FrameId>> awaiters;
};

class ShowingAwaiters {
 public:
  ShowingAwaiters(Profile& profile, const TaskRows& tasks) : profile_(profile), tasks_(tasks) {
    std::map<Function, uint32_t> numbers;
    functions_.push_back(0);
    for (const Frame& frame : profile.frames()) {
      const bool is_python = frame.kind == FrameKind::python;
      functions_.push_back(
          !is_python ? 0
                     : numbers.try_emplace(function_of(frame), static_cast<uint32_t>(numbers.size() + 1))
                           .first->second);
    }
    shared_.resize(numbers.size() + 1);
  }

  void show() {
    if (!learn()) return;
    marker_ = add_marker();
    const std::vector<Stack>& stacks = profile_.stacks();
    std::vector<StackId> shown(stacks.size() + 1);
    std::vector<FrameId> callers(stacks.size() + 1);  // by stack: its innermost Python function
    for (uint32_t i = 1; i <= stacks.size(); ++i) {
      const Stack& row = stacks[i - 1];
      const uint32_t parent = row.parent.value < i ? row.parent.value : 0;
      const uint32_t function = function_at(row.frame);
      StackId below = shown[parent];
      if (!shared_[function].empty() && callers[parent] && rows_.size() < stacks.size() + kMostAdded &&
          runs(Outermost::coroutine, profile_.frame(callers[parent])))
        below = put_awaiters(below, function);
      shown[i] = put(below, row.frame);
      callers[i] = function != 0 ? row.frame : callers[parent];
    }
    profile_.replace_stacks(std::move(rows_), shown);
  }

 private:
  // 0: not a Python function, or not known.
  uint32_t function_at(FrameId frame) const {
    return frame.value < functions_.size() ? functions_[frame.value] : 0;
  }

  // Outermost first. Empty: not known.
  std::vector<FrameId> frames_of(TaskStackId stack) const {
    std::vector<FrameId> frames;
    while (stack && stack.value <= tasks_.stacks.size()) {
      if (frames.size() >= kMostFrames) return {};
      const TaskStack& row = tasks_.stacks[stack.value - 1];
      if (function_at(row.frame) == 0) return {};
      frames.push_back(row.frame);
      stack = row.parent < stack ? row.parent : TaskStackId();
    }
    std::reverse(frames.begin(), frames.end());
    return frames;
  }

  // Returns whether any awaiters are known.
  bool learn() {
    std::map<uint32_t, SeenAwaiters> seen;
    for (const TaskWaiter& row : tasks_.waiters) {
      if (!row.group || row.group.value > tasks_.groups.size()) continue;
      const uint32_t coroutine = function_at(tasks_.groups[row.group.value - 1].frame);
      if (coroutine == 0) continue;
      seen[coroutine].all += row.seen;
      auto frames = frames_of(row.stack);
      if (frames.empty()) continue;
      seen[coroutine].with_awaiter += row.seen;
      seen[coroutine].awaiters.push_back(std::move(frames));
    }
    bool any = false;
    for (const auto& [coroutine, of] : seen) {
      if (!is_seen_enough(of.with_awaiter, of.all)) continue;
      shared_[coroutine] = shared_by(of.awaiters);
      any = any || !shared_[coroutine].empty();
    }
    return any;
  }

  // A frame has no line where the lines differ.
  std::vector<FrameId> shared_by(const std::vector<std::vector<FrameId>>& awaiters) {
    std::vector<FrameId> shared = awaiters.front();
    for (const auto& frames : awaiters) {
      shared.resize(std::min(shared.size(), frames.size()));
      for (size_t i = 0; i < shared.size(); ++i) {
        if (shared[i] == frames[i]) continue;
        if (function_at(shared[i]) != function_at(frames[i])) {
          shared.resize(i);
        } else {
          shared[i] = without_line(shared[i]);
        }
      }
    }
    return shared;
  }

  FrameId without_line(FrameId id) {
    const auto [at, fresh] = without_line_.try_emplace(function_at(id));
    if (fresh) {
      Frame frame = profile_.frame(id);
      frame.line = 0;
      at->second = add(frame, at->first);
    }
    return at->second;
  }

  FrameId add(const Frame& frame, uint32_t function) {
    const FrameId id(static_cast<uint32_t>(functions_.size()));
    profile_.emit(id, frame);
    functions_.push_back(function);
    return id;
  }

  FrameId add_marker() {
    Frame frame;
    frame.kind = FrameKind::marker;
    frame.function = frame.qualified_name = std::string(kAwaits);
    return add(frame, 0);
  }

  StackId put(StackId parent, FrameId frame) {
    const auto [at, fresh] = made_.try_emplace(uint64_t{parent.value} << 32 | frame.value,
                                               static_cast<uint32_t>(rows_.size() + 1));
    if (fresh) rows_.push_back({parent, frame});
    return StackId(at->second);
  }

  // The awaiters of this coroutine's tasks, called by the awaiters of those, and so on.
  StackId put_awaiters(StackId below, uint32_t coroutine) {
    constexpr size_t kMostTasks = 16;
    std::vector<uint32_t> chain;
    while (!shared_[coroutine].empty() && chain.size() < kMostTasks &&
           std::find(chain.begin(), chain.end(), coroutine) == chain.end()) {
      chain.push_back(coroutine);
      coroutine = function_at(shared_[coroutine].front());
    }
    for (size_t i = chain.size(); i-- > 0;) {
      for (const FrameId frame : shared_[chain[i]]) below = put(below, frame);
      below = put(below, marker_);
    }
    return below;
  }

  Profile& profile_;
  const TaskRows& tasks_;
  std::vector<uint32_t> functions_;           // by frame; 0: not a Python function
  std::vector<std::vector<FrameId>> shared_;  // by function: what all awaiters of its tasks share
  std::map<uint32_t, FrameId> without_line_;  // by function
  FrameId marker_;
  std::vector<Stack> rows_;
  tsl::robin_map<uint64_t, uint32_t, Spread> made_;  // parent << 32 | frame
};

}  // namespace

bool is_awaits_marker(const Frame& frame) {
  return frame.kind == FrameKind::marker && frame.function == kAwaits;
}

void show_awaiters(Profile& profile, const TaskRows& tasks) {
  // Most programs have only tasks that no task waits for.
  if (std::any_of(tasks.waiters.begin(), tasks.waiters.end(),
                  [](const auto& row) { return bool(row.stack); }))
    ShowingAwaiters(profile, tasks).show();
}

}  // namespace phlox::view
