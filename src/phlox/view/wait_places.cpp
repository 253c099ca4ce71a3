#include "phlox/view/wait_places.h"

#include <tsl/robin_map.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "phlox/base/spread.h"
#include "phlox/view/forks.h"
#include "phlox/view/markers.h"
#include "phlox/view/system_calls.h"

namespace phlox::view {

using namespace profile;

namespace {

uint64_t key_of(uint32_t high, uint32_t low) {
  return uint64_t{high} << 32 | low;
}

// `with poll: poll.wait()` calls these on the line that waits; a loop calls more.
bool is_of_with(const Frame& frame) {
  return frame.function == "__enter__" || frame.function == "__exit__";
}

bool is_item(Role role) {
  return role == Role::work || is_fetching(role);
}

}  // namespace

WaitPlaces::WaitPlaces(const Profile& profile) : names_{""} {
  const std::vector<uint32_t> function_of_frame = number_functions(profile);
  number_paths(profile, function_of_frame);
  places_.resize(path_of_stack_.size());
  for (size_t i = 1; i < places_.size(); ++i) places_[i] = place_of(path_of_stack_[i]);
  find_native_loops(profile, function_of_frame);
  learn_fetches(profile);
}

std::string_view WaitPlaces::name(uint32_t loop_or_pool) const {
  return names_[loop_or_pool < names_.size() ? loop_or_pool : 0];
}

uint32_t WaitPlaces::number_of(std::string_view name) {
  const auto found = std::find(names_.begin(), names_.end(), name);
  if (found != names_.end()) return static_cast<uint32_t>(found - names_.begin());
  names_.push_back(name);
  return static_cast<uint32_t>(names_.size() - 1);
}

// By frame; 0: not Python. Includes markers that replace Python functions, or show a fork.
std::vector<uint32_t> WaitPlaces::number_functions(const Profile& profile) {
  const auto& frames = profile.frames();
  std::vector<uint32_t> numbers(frames.size() + 1, 0);
  functions_.resize(1);
  std::map<std::tuple<std::string_view, std::string_view, int32_t>, uint32_t> known;
  for (size_t i = 0; i < frames.size(); ++i) {
    const Frame& frame = frames[i];
    const bool not_read = hides_python(frame), forked_here = is_fork_marker(frame);
    if (frame.kind != FrameKind::python && !not_read && !forked_here) continue;
    const std::string_view name = frame.qualified_name.empty() ? frame.function : frame.qualified_name;
    const auto [at, added] =
        known.try_emplace({name, frame.file, frame.first_line}, static_cast<uint32_t>(functions_.size()));
    numbers[i + 1] = at->second;
    if (!added) continue;
    Function function;
    function.not_read = not_read;
    function.forked_here = forked_here;
    function.may_be_selector = may_be_selector(frame);
    if (const KnownFunction* found = known_function(frame)) {
      function.role = found->role;
      function.begins_thread = found->begins_thread;
      function.calls_selector = calls_selector(found);
      if (!found->of.empty()) function.name = number_of(found->of);
    }
    functions_.push_back(function);
  }
  return numbers;
}

// A role that depends on the caller. Drops that of a function that does not begin a thread: AnyIO's worker is
// a Thread with a run(), and the function that runs a program's event loop has that name, too.
uint32_t WaitPlaces::as_called_by(uint32_t above, uint32_t function) {
  const Function& caller = functions_[paths_[above].function];
  Function called = functions_[function];
  if (called.begins_thread && caller.role != Role::root) {
    called = {};
  } else if (caller.calls_selector && called.may_be_selector && called.role == Role::none) {
    called.role = Role::waits_for_events;
  } else {
    return function;
  }
  functions_.push_back(called);
  return static_cast<uint32_t>(functions_.size() - 1);
}

void WaitPlaces::add_path(uint32_t above, uint32_t function) {
  function = as_called_by(above, function);
  const Path& parent = paths_[above];
  const Role role = functions_[function].role;
  const uint32_t name = functions_[function].name;
  Path path = parent;
  path.parent = above;
  path.function = function;
  const auto here = static_cast<uint32_t>(paths_.size());
  if (role == Role::root || role == Role::child_root) {
    // The part of a forked child's stack that belongs to its parent is not the child's.
    path = Path{above, function};
    path.of_child = role == Role::child_root;
  } else if (functions_[function].forked_here) {
    path = Path{above, function};
  } else {
    path.depth = parent.depth + 1;
    if (is_item(role)) path.known = here;
    if (role == Role::loop || role == Role::native_loop) path.loop = name;
    if (role == Role::pool) path.pool = name;
  }
  paths_.push_back(path);
}

void WaitPlaces::number_paths(const Profile& profile, const std::vector<uint32_t>& function_of_frame) {
  const auto& stacks = profile.stacks();
  path_of_stack_.resize(stacks.size() + 1, 0);
  paths_.resize(1);
  tsl::robin_map<uint64_t, uint32_t, Spread> known;
  for (uint32_t i = 1; i <= stacks.size(); ++i) {
    const Stack& stack = stacks[i - 1];
    const uint32_t above = stack.parent.value < i ? path_of_stack_[stack.parent.value] : 0;
    const uint32_t function =
        stack.frame.value < function_of_frame.size() ? function_of_frame[stack.frame.value] : 0;
    path_of_stack_[i] = above;
    if (function == 0) continue;
    const auto [at, added] = known.try_emplace(key_of(above, function), static_cast<uint32_t>(paths_.size()));
    if (added) add_path(above, function);
    path_of_stack_[i] = at->second;
  }
}

// The path of the innermost function that is not part of the waiting itself; 0: none.
uint32_t WaitPlaces::asking(uint32_t path, WaitPlace& place) const {
  const auto role = [&](uint32_t at) { return functions_[paths_[at].function].role; };
  if (role(path) == Role::queue_lock && role(paths_[path].parent) == Role::waits_for_message)
    path = paths_[path].parent;
  for (; path != 0 && is_waiting(role(path)) && role(path) != Role::queue_lock; path = paths_[path].parent) {
    // Event.wait calls Condition.wait.
    place.is_event = role(path) == Role::waits_for_condition && place.waits == Role::waits_for_condition;
    place.waits = role(path);
  }
  return path;
}

// Whether a function above this one runs a work item, or is a pool's worker: what it called is then a work
// item.
bool WaitPlaces::is_within_item(uint32_t path) const {
  for (uint32_t at = paths_[paths_[path].parent].known; at != 0; at = paths_[paths_[at].parent].known) {
    const Role role = functions_[paths_[at].function].role;
    if (role == Role::work || role == Role::pool) return true;
  }
  return false;
}

WaitPlace WaitPlaces::place_of(uint32_t path) const {
  WaitPlace place;
  if (path == 0) return place;
  place.of_child = paths_[path].of_child;
  place.loop = paths_[path].loop;
  place.pool = paths_[path].pool;
  const uint32_t asks = asking(path, place);
  const Path& asked = paths_[asks];
  const Role role = functions_[asked.function].role;
  const Role known = functions_[paths_[asked.known].function].role;
  const bool gets = place.waits != Role::waits_for_others && place.waits != Role::waits_for_children;
  // A timer of `threading` waits in its thread's first function.
  const bool is_timer = role == Role::root && place.waits == Role::waits_for_condition;
  if (asks == 0) {
    place.position = Position::elsewhere;
  } else if (functions_[asked.function].not_read) {
    // A pool's worker or a loop may have called a function that waits for it.
    place.position = known == Role::work ? Position::within_work : Position::not_read;
  } else if (role == Role::loop) {
    place.position = is_within_item(asks) ? Position::nested_fetch : Position::fetch;
  } else if (role == Role::native_loop && place.waits == Role::none) {
    place.position = is_within_item(asks) ? Position::nested_fetch : Position::native_loop;
  } else if ((gets && (role == Role::fetch || role == Role::pool)) || known == Role::fetch_beneath ||
             is_timer) {
    place.position = Position::fetch;
  } else if (asked.known != 0) {
    place.position = Position::within_work;
  } else {
    place.position = asked.depth == 0 ? Position::root : Position::elsewhere;
  }
  return place;
}

// The path of the function of `stack` that starts a loop in C and calls this one; 0: another function is
// known to be in between, or none.
uint32_t WaitPlaces::native_loop_above(uint32_t stack) const {
  WaitPlace unused;
  const uint32_t known = paths_[asking(path_of_stack_[stack], unused)].known;
  return functions_[paths_[known].function].role == Role::native_loop ? known : 0;
}

// A loop in C that no table knows: a line that itself waits in epoll, and also calls Python functions.
// Beneath a function that is known to start a loop, it is that loop, unless the function waits itself:
// frameworks put functions of their own in between.
void WaitPlaces::find_native_loops(const Profile& profile, const std::vector<uint32_t>& function_of_frame) {
  const auto& stacks = profile.stacks();
  std::vector<uint32_t> innermost(stacks.size() + 1, 0);  // by stack: that of its innermost Python frame
  for (uint32_t i = 1; i <= stacks.size(); ++i) {
    const Stack& stack = stacks[i - 1];
    const uint32_t above = stack.parent.value < i ? innermost[stack.parent.value] : 0;
    const bool is_python = stack.frame.value < function_of_frame.size() &&
                           function_of_frame[stack.frame.value] != 0 &&
                           !functions_[function_of_frame[stack.frame.value]].forked_here;
    innermost[i] = is_python ? i : above;
    if (is_python && !is_of_with(profile.frame(stack.frame))) places_[above].calls_python = true;
  }
  places_[0] = {};
  const bool aarch64 = machine_of(profile) == "aarch64";
  std::vector<bool> is_loop(stacks.size() + 1, false);
  std::vector<bool> waits_itself(paths_.size(), false);
  bool any = false;
  std::vector<uint32_t> beneath_known;
  for (const Sample& sample : profile.samples()) {
    if (sample.cpu_state != CpuState::blocked || sample.stack.value >= innermost.size()) continue;
    const uint32_t at = innermost[sample.stack.value];
    const WaitPlace& place = places_[at];
    if (place.waits != Role::none || !is_call(kEpollCalls, sample.system_call, aarch64)) continue;
    if (place.position == Position::native_loop) waits_itself[path_of_stack_[at]] = true;
    if (!place.calls_python) continue;
    if (place.position == Position::root || place.position == Position::elsewhere) any = is_loop[at] = true;
    if (place.position == Position::within_work && native_loop_above(at) != 0) beneath_known.push_back(at);
  }
  for (const uint32_t at : beneath_known) {
    if (!waits_itself[native_loop_above(at)]) any = is_loop[at] = true;
  }
  if (!any) return;
  const uint32_t name = number_of("native");
  std::vector<bool> beneath(stacks.size() + 1, false);
  for (uint32_t i = 1; i <= stacks.size(); ++i) {
    const uint32_t parent = stacks[i - 1].parent.value < i ? stacks[i - 1].parent.value : 0;
    beneath[i] = beneath[parent] || is_loop[parent];
    WaitPlace& place = places_[i];
    if (is_loop[innermost[i]]) {
      place.position = Position::native_loop;
    } else if (beneath[i] && (place.position == Position::root || place.position == Position::elsewhere)) {
      place.position = Position::within_work;
    } else {
      continue;
    }
    if (place.loop == 0) place.loop = name;
  }
}

// If a thread's first function gets from a queue, it is a worker's loop: what it calls is work, wherever else
// that waits.
void WaitPlaces::learn_fetches(const Profile& profile) {
  std::vector<bool> learned(functions_.size(), false);
  for (const Sample& sample : profile.samples()) {
    const WaitPlace& place = of(sample.stack);
    if (place.position != Position::root || sample.cpu_state != CpuState::blocked) continue;
    if (place.waits != Role::waits_for_queue && place.waits != Role::waits_for_message) continue;
    if (!place.of_child && sample.thread && sample.thread.value <= profile.threads().size() &&
        is_main(profile, profile.thread(sample.thread)))
      continue;
    WaitPlace unused;
    learned[paths_[asking(path_of_stack_[sample.stack.value], unused)].function] = true;
  }
  std::vector<bool> beneath(paths_.size(), false);  // a learned function is above it
  for (size_t i = 1; i < paths_.size(); ++i) {
    const Path& path = paths_[i];
    if (path.depth >= 0) beneath[i] = beneath[path.parent] || learned[paths_[path.parent].function];
  }
  for (size_t i = 1; i < places_.size(); ++i) {
    WaitPlace unused;
    const uint32_t path = path_of_stack_[i];
    if (places_[i].position == Position::elsewhere && beneath[asking(path, unused)])
      places_[i].position = Position::within_work;
  }
}

bool is_main(const Profile& profile, const Thread& thread) {
  if (!thread.process || thread.process.value > profile.processes().size()) return false;
  const Process& process = profile.process(thread.process);
  return thread.tid != 0 && (thread.tid == process.pid || thread.tid == process.namespace_pid);
}

}  // namespace phlox::view
