#include "phlox/view/loop_stacks.h"

#include <fmt/format.h>

#include <string>

#include "phlox/profile/library_file.h"
#include "phlox/profile/recorded_words.h"
#include "phlox/view/awaiters.h"
#include "phlox/view/forks.h"
#include "phlox/view/markers.h"

namespace phlox::view {

using namespace profile;

bool has_own_stacks(std::string_view loop) {
  return loop == "gevent" || loop == "eventlet";
}

bool is_of_a_library(const Frame& frame) {
  return is_library_file(frame.file);
}

LoopStacks::LoopStacks(const Profile& profile, const WaitPlaces& places)
    : profile_(profile),
      places_(places),
      is_forked_(profile.threads().size() + 1, false),
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
  find_forks();
}

void LoopStacks::find_forks() {
  bool any = false;
  for (uint32_t i = 1; i < is_forked_.size(); ++i) {
    const Thread& thread = profile_.thread(ThreadId(i));
    is_forked_[i] = is_main(profile_, thread) &&
                    profile_.meta().contains(fmt::format("{}{}", kForkedFrom, thread.process.value));
    any = any || is_forked_[i];
  }
  if (!any) return;
  for (const Sample& sample : profile_.samples()) {
    if (sample.thread.value >= is_forked_.size() || !is_forked_[sample.thread.value]) continue;
    const LoopPlace& place = of_stack(sample.stack);
    if (place.at == InLoop::poll || place.at == InLoop::own) polled_.insert(run_of(sample, place));
  }
}

LoopStacks::Run LoopStacks::run_of(const Sample& sample, const LoopPlace& place) const {
  const Stack& row = profile_.stack(place.loop);
  return {sample.thread.value, row.parent.value, function_of(profile_.frame(row.frame))};
}

bool LoopStacks::is_inherited(const Sample& sample) {
  if (sample.thread.value >= is_forked_.size() || !is_forked_[sample.thread.value]) return false;
  const LoopPlace& place = of_stack(sample.stack);
  return place.loop && !polled_.contains(run_of(sample, place));
}

LoopPlace LoopStacks::of(const Sample& sample) {
  LoopPlace place = of_stack(sample.stack);
  if (is_inherited(sample)) place.at = InLoop::not_in_it;
  return place;
}

uint32_t LoopStacks::loop(const Sample& sample) {
  const uint32_t loop = places_.of(sample.stack).loop;
  return loop == 0 || is_inherited(sample) ? 0 : loop;
}

const LoopPlace& LoopStacks::of_stack(StackId stack) {
  if (stack.value >= stacks_.size()) stack = {};
  if (stack && !found_[stack.value]) {
    found_[stack.value] = true;
    stacks_[stack.value] = find(stack);
  }
  return stacks_[stack.value];
}

// Of the innermost function of Python on this stack; null: it is not known, or there is none.
const KnownFunction* LoopStacks::caller(StackId stack) const {
  for (StackId at = stack; at && at.value < stacks_.size();) {
    const Stack& row = profile_.stack(at);
    if (!row.frame || row.frame.value > known_.size()) return nullptr;
    if (profile_.frame(row.frame).kind == FrameKind::python) return known_[row.frame.value - 1];
    at = row.parent < at ? row.parent : StackId();
  }
  return nullptr;
}

LoopPlace LoopStacks::find(StackId stack) const {
  LoopPlace place;
  FrameId outermost;  // that is not in a library
  bool waits = true, for_events = false, is_task = true;
  for (StackId at = stack; at && at.value < stacks_.size();) {
    const Stack& row = profile_.stack(at);
    const StackId above = row.parent < at ? row.parent : StackId();
    if (!row.frame || row.frame.value > known_.size()) return {};
    const Frame& frame = profile_.frame(row.frame);
    const bool hides = frame.kind == FrameKind::marker && (at == stack || hides_python(frame));
    if (hides && !place.callback) return {InLoop::not_read, {}, {}, {}};
    if (is_fork_marker(frame)) break;
    is_task = is_task && !is_awaits_marker(frame);
    if (frame.kind == FrameKind::python) {
      const KnownFunction* known = known_[row.frame.value - 1];
      if (is_loop(known) || is_loop_[at.value]) {
        place.at = place.callback ? InLoop::callback : for_events ? InLoop::poll : InLoop::own;
        if (!place.program) place.program = place.callback;
        place.loop = at;
        return place;
      }
      at = above;
      if (may_be_selector(frame) && calls_selector(caller(above))) {
        for_events = for_events || waits;
        continue;
      }
      if (!is_task && !is_handle(known)) continue;  // an awaiter does not run
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
  // The first function of a stack of its own.
  place.callback = outermost ? outermost : place.callback;
  return place;
}

Function function_of(const Frame& frame) {
  return {frame.qualified_name.empty() ? frame.function : frame.qualified_name, frame.file, frame.first_line};
}

}  // namespace phlox::view
