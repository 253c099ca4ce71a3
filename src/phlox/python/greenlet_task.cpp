// One greenlet: its frames while it is switched away. Since greenlet 3.0.2, the frames of CPython 3.12 and
// later are linked past those on its C stack (Greenlet::expose_frames()); with older versions only the frames
// up to there are shown, because another greenlet may be using that stack.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>

#include "phlox/base/load.h"
#include "phlox/python/frame_walk.h"
#include "phlox/python/greenlet_module.h"
#include "phlox/python/line_table.h"
#include "phlox/python/task_reader.h"

namespace phlox::python {

// Innermost first. False: the contents are invalid at this moment.
bool TaskReader::read_raw_frames(RemoteAddress top, std::span<RawFrame> frames, WalkResult& walk,
                                 Evidence& evidence) {
  struct Proved {
    TaskReader& reader;
    Evidence& evidence;
    const std::byte* find(RemoteAddress at, size_t size) { return reader.peek(at, size, evidence); }
  };
  Proved memory{*this, evidence};
  walk = walk_frames(layout_, top, memory, frames);
  return walk.end != WalkEnd::unreadable && walk.end != WalkEnd::broken;
}

bool TaskReader::read_frames(RemoteAddress top, TaskReading& out) {
  std::array<RawFrame, kMaxAwaitFrames> frames;
  WalkResult walk;
  if (!read_raw_frames(top, std::span(frames), walk, out.evidence)) return false;
  out.task.cut = walk.end == WalkEnd::full;
  const bool entries = has_entry_frames(layout_);
  for (size_t i = 0; i < walk.count; ++i) {
    if (entries && frames[i].entry) {
      out.task.cut = out.task.cut || i + 1 < walk.count;
      break;
    }
    const RemoteAddress code = frames[i].code;
    // Compared by name: a program without asyncio need not have imported `types`.
    if (!is_plausible(code) || module_.type_of(code).name != "code") return false;
    const TaskCodes::Known* known = codes_.find(code);
    if (known == nullptr) return false;
    if (known->code.shim) continue;
    out.task.frames.push_back(
        {known->function, line_at(*known, frames[i].frame, code, frames[i].instruction)});
  }
  std::reverse(out.task.frames.begin(), out.task.frames.end());
  return true;
}

std::string TaskReader::greenlet_name(RemoteAddress greenlet, const GreenletState& state, bool hub) {
  if (hub) return "hub";
  if (state.main == greenlet) return "main greenlet";
  const std::string& type = module_.type_of(greenlet).name;
  return fmt::format("{} at {:#x}", type.substr(type.rfind('.') + 1), greenlet.value);
}

bool TaskReader::read_greenlet(RemoteAddress greenlet, TaskReading& out) {
  if (layout_.object.ob_refcnt.present()) {
    const std::byte* count = memory_.find(greenlet + *layout_.object.ob_refcnt, 8);
    out.gone = count == nullptr || load<int64_t>(count) <= 0;
    if (out.gone) return false;
  }
  const auto state = greenlets_->read(greenlet);
  out.gone = !state;
  if (out.gone) return false;
  // Type, pointer to the C++ object, and the part of that object that is used here.
  if (peek(greenlet + *layout_.object.ob_type, 8, out.evidence) == nullptr ||
      peek(greenlet + *layout_.object.size + 16, 8, out.evidence) == nullptr ||
      peek(state->address, state->size, out.evidence) == nullptr)
    return false;
  out.pending = !state->started || state->active;
  if (!out.pending) return true;
  out.greenlet = true;
  out.task.address = greenlet;
  out.loop = state->main;
  if (!out.loop && state->parent) {
    if (const auto parent = greenlets_->read(state->parent)) out.loop = parent->main;
  }
  if (!out.loop) return false;
  const RemoteAddress type = memory_.word(greenlet + *layout_.object.ob_type);
  out.hub = module_.derives(type, "Hub");
  out.of_eventlet = module_.derives(type, "GreenThread");
  out.parent = state->parent;
  out.task.name = greenlet_name(greenlet, *state, out.hub);
  if (!state->started) {
    out.task.state = TaskState::unstarted;
    return true;
  }
  const RemoteAddress place = greenlets_->place_of_current(out.loop);
  const std::byte* current = place ? peek(place, 8, out.evidence) : nullptr;
  const bool runs = current != nullptr && RemoteAddress(load<uint64_t>(current)) == greenlet;
  if (runs && state->frame) return false;
  out.task.state = runs ? TaskState::running : TaskState::parked;
  if (!state->frame) return true;  // it runs, or C code without Python frames switched away from it
  RemoteAddress top = state->frame;
  if (layout_.traits.interpreter_frames) {
    // PyFrameObject: f_back, f_frame.
    const std::byte* field = peek(state->frame + *layout_.object.size + 8, 8, out.evidence);
    if (field == nullptr) return false;
    top = RemoteAddress(load<uint64_t>(field));
  }
  return read_frames(top, out);
}

}  // namespace phlox::python
