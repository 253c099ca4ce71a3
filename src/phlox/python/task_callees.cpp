// What a running coroutine has called: the frames of its thread beyond its own. The program runs meanwhile,
// so a frame counts only if two walks along the thread's frames met it, in the same place.
#include <algorithm>
#include <span>
#include <vector>

#include "phlox/python/frame_walk.h"
#include "phlox/python/line_table.h"
#include "phlox/python/task_reader.h"

namespace phlox::python {
namespace {

constexpr size_t kWalks = 4;

// Where two walks agree, from the outermost on. The last one is at another instruction, or has called another
// function since.
size_t common_part(std::span<const RawFrame> before, std::span<const RawFrame> after) {
  size_t common = 0;
  while (common < std::min(before.size(), after.size()) && before[common].frame == after[common].frame &&
         before[common].code == after[common].code) {
    if (before[common].instruction != after[common].instruction) return common + 1;
    ++common;
  }
  return common;
}

}  // namespace

// Outermost first; none: this is not its thread, or the frames cannot be read at this moment.
std::optional<std::vector<RawFrame>> TaskReader::frames_beyond(RemoteAddress thread, RemoteAddress frame,
                                                               RemoteAddress code) {
  std::vector<RawFrame> frames;
  const WalkEnd end = walk_thread(thread, frames);
  if (end == WalkEnd::unreadable || end == WalkEnd::broken) return {};
  const auto own = std::find_if(frames.begin(), frames.end(),
                                [&](const RawFrame& one) { return one.frame == frame && one.code == code; });
  if (own == frames.end()) return {};
  frames.erase(own, frames.end());
  std::reverse(frames.begin(), frames.end());
  return frames;
}

void TaskReader::add_callees(std::span<const RawFrame> frames, TaskReading& out) {
  std::vector<TaskFrame> called;
  for (const RawFrame& frame : frames) {
    if (!frame.code) continue;  // an entry frame
    const TaskCodes::Known* known = known_code(frame);
    if (known == nullptr) return;
    if (known->code.shim) continue;
    called.push_back({known->function, line_at(*known, frame.frame, frame.code, frame.instruction)});
  }
  called.resize(std::min(called.size(), kMaxAwaitFrames - std::min(out.task.frames.size(), kMaxAwaitFrames)));
  out.task.called = static_cast<uint32_t>(called.size());
  out.task.frames.insert(out.task.frames.end(), called.begin(), called.end());
}

bool TaskReader::read_callees(RemoteAddress thread, TaskReading& out) {
  const auto before = frames_beyond(thread, out.running_frame, out.running_code);
  if (!before) return false;
  for (size_t i = 1; i < kWalks; ++i) {
    const auto after = frames_beyond(thread, out.running_frame, out.running_code);
    if (!after) continue;
    const std::span<const RawFrame> proved = std::span(*after).first(common_part(*before, *after));
    // The same task: its fields, its coroutine and that it runs.
    memory_.forget();
    if (!out.evidence.holds(memory_)) return true;
    add_callees(proved, out);
    return true;
  }
  return true;
}

}  // namespace phlox::python
