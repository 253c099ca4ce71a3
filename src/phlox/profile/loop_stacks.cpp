#include "phlox/profile/loop_stacks.h"

#include <string>

namespace phlox::profile {
namespace {

// asyncio's Handle: between the loop and what it calls.
bool is_handle(const KnownFunction* known) {
  return known != nullptr && known->role == Role::work && known->function == "_run";
}

bool is_loop(const KnownFunction* known) {
  return known != nullptr && (known->role == Role::loop || known->role == Role::native_loop);
}

}  // namespace

bool has_own_stacks(std::string_view loop) {
  return loop == "gevent" || loop == "eventlet";
}

bool is_of_a_library(const Frame& frame) {
  return frame.file.starts_with('<') || frame.file.find("/site-packages/") != std::string::npos ||
         frame.file.find("/dist-packages/") != std::string::npos ||
         frame.file.find("/lib/python") != std::string::npos;
}

LoopStacks::LoopStacks(const Profile& profile, const WaitPlaces& places)
    : profile_(profile),
      is_loop_(profile.stacks().size() + 1, false),
      found_(profile.stacks().size() + 1, false),
      stacks_(profile.stacks().size() + 1) {
  for (const Frame& frame : profile.frames()) known_.push_back(known_function(frame));
  const auto is_python = [&](StackId at) {
    const FrameId frame = profile.stack(at).frame;
    return frame && frame.value <= known_.size() && profile.frame(frame).kind == FrameKind::python;
  };
  for (uint32_t i = 1; i < is_loop_.size(); ++i) {
    if (places.of(StackId(i)).position != Position::native_loop) continue;
    StackId at(i);
    while (at && !is_python(at)) {
      const StackId parent = profile.stack(at).parent;
      at = parent < at ? parent : StackId();
    }
    is_loop_[at.value] = at.value != 0;
  }
}

const LoopPlace& LoopStacks::of(StackId stack) {
  if (stack.value >= stacks_.size()) stack = {};
  if (stack && !found_[stack.value]) {
    found_[stack.value] = true;
    stacks_[stack.value] = find(stack);
  }
  return stacks_[stack.value];
}

LoopPlace LoopStacks::find(StackId stack) const {
  LoopPlace place;
  FrameId outermost;  // that is not a library's
  bool waits = true, for_events = false;
  for (StackId at = stack; at && at.value < stacks_.size();) {
    const Stack& row = profile_.stack(at);
    const StackId above = row.parent < at ? row.parent : StackId();
    if (!row.frame || row.frame.value > known_.size()) return {};
    const Frame& frame = profile_.frame(row.frame);
    if (frame.kind == FrameKind::marker && at == stack) return {InLoop::not_read, {}, {}};
    if (frame.kind == FrameKind::python) {
      const KnownFunction* known = known_[row.frame.value - 1];
      if (is_loop(known) || is_loop_[at.value]) {
        place.at = place.callback ? InLoop::callback : for_events ? InLoop::poll : InLoop::own;
        if (!place.program) place.program = place.callback;
        return place;
      }
      waits = waits && known != nullptr && is_waiting(known->role);
      for_events = for_events || (waits && known->role == Role::waits_for_events);
      if (!waits && !(is_handle(known) && place.callback)) place.callback = row.frame;
      if (!is_of_a_library(frame)) {
        if (!place.program) place.program = row.frame;
        outermost = row.frame;
      }
    }
    at = above;
  }
  // Of a stack of its own, what it began with.
  place.callback = outermost ? outermost : place.callback;
  return place;
}

Function function_of(const Frame& frame) {
  return {frame.qualified_name.empty() ? frame.function : frame.qualified_name, frame.file, frame.first_line};
}

}  // namespace phlox::profile
