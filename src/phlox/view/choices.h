// The choices of a view as values, the same for every output. Only cli knows how they are written on a
// command line (view_values.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "phlox/base/clock.h"
#include "phlox/profile/model.h"

namespace phlox::view {

// What a frame is (function or line; one of them), and what is at the root of every stack.
struct By {
  bool line = false;     // frames are split by line: "name (file:line)"; else one frame a function
  bool thread = false;   // a root frame for the thread
  bool process = false;  // a root frame for the process, outside the thread's
  // One for all processes of one command line, outside the process's (program_name.h)
  bool program = false;
  bool label = false;     // a root frame for the label, inside the thread's (time_labels.h)
  bool endpoint = false;  // a root frame for the endpoint, outside the label's (endpoints.h)
  // Labels include the place (Label::module_id and the members after it), and differ by it.
  bool place = false;
};

// One bit for each named state: "running,runnable,blocked,gil-holds,gil-waits,idle". idle: blocked in a
// system call and not waiting for the GIL. A sample passes if any chosen state holds for it. Empty choice:
// all pass.
enum class StateChoice : uint8_t {
  running = 1,
  runnable = 2,
  blocked = 4,
  gil_holds = 8,
  gil_waits = 16,
  idle = 32
};

// count, bytes: the counts of the event that is shown, by its unit (sampled_events.h).
enum class Weight : uint8_t { wall, cpu, samples, count, bytes };
constexpr bool is_time(Weight weight) {
  return weight == Weight::wall || weight == Weight::cpu;
}
constexpr bool is_of_event(Weight weight) {
  return weight == Weight::count || weight == Weight::bytes;
}

// Which part of the threads' time is shown (work.h). `work`: what they compute, and their waiting except that
// of threads that have nothing to do.
enum class Show : uint8_t { everything, work, computing, waiting };

// What a thread did when it was sampled.
enum class Doing : uint8_t {
  computing,           // it ran, or only lacked a CPU or the GIL
  waiting,             // within its work
  waiting_for_work,    // idle
  waiting_for_others,  // for recorded threads or processes to which it has handed its work
  waiting_unknown,     // idle or at work: not known from the recording
};
inline constexpr size_t kDoings = 5;
constexpr bool is_shown(Doing doing, Show show) {
  switch (show) {
    case Show::everything:
      return true;
    case Show::work:
      return doing != Doing::waiting_for_work && doing != Doing::waiting_for_others;
    case Show::computing:
      return doing == Doing::computing;
    case Show::waiting:
      return doing != Doing::computing;
  }
  return true;
}

// Names of C++ and Rust functions: as the format prefers (pictures have the short name, with the full one
// found by a search; files for machines have the full one), or one of the two everywhere.
enum class NativeNames : uint8_t { by_format, full, brief };

struct Choices {
  By by;
  Show show = Show::everything;
  uint8_t states = 0;                       // StateChoice bits; 0: all
  std::optional<std::string> thread_regex;  // RE2 syntax, searched in "name", "kernel_name" and "tid"
  std::optional<int32_t> pid;
  std::optional<std::string> label_regex;     // searched in the text of labels (time_labels.h)
  std::optional<std::string> endpoint_regex;  // searched in endpoint_label() (endpoints.h)
  // Lower-case hex digits: 16, one span; otherwise the first ones of a trace (chosen_trace.h).
  std::optional<std::string> trace;
  Nanoseconds from = 0;  // since the start of the recording
  Nanoseconds to = std::numeric_limits<Nanoseconds>::max();
  Weight weight = Weight::wall;
  NativeNames native_names = NativeNames::by_format;
  bool all_frames = false;  // also the interpreter's own C: show_native_frames() checks this first
  bool awaiters = true;     // in the stacks of tasks (awaiters.h): prepare_tasks() checks this first
};

std::string_view show_name(Show show);  // "work", "computing", "waiting", "everything"

}  // namespace phlox::view
