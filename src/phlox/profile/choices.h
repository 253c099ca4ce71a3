// The choices of a view, the same for every output: as values. How they are written on a command line is
// known to cli (view_values.h) alone.
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

namespace phlox::profile {

// What a frame is (function or line; one of them), and what is put at the root of every stack.
struct By {
  bool line = false;     // frames are split by line: "name (file:line)"; else one frame a function
  bool thread = false;   // a root frame for the thread
  bool process = false;  // a root frame for the process, outside the thread's
  bool program = false;  // one for all processes of one command line, outside theirs (program_name.h)
  bool label = false;    // a root frame for the label, inside the thread's (time_labels.h)
  bool place = false;    // labels say more of where (Label::module_id and what follows it), and differ by it
};

// One bit a named state: "running,runnable,blocked,gil-holds,gil-waits,idle". idle: blocked in a system call
// and not waiting for the GIL. A sample passes when any chosen state holds for it. Empty choice: all pass.
enum class StateChoice : uint8_t {
  running = 1,
  runnable = 2,
  blocked = 4,
  gil_holds = 8,
  gil_waits = 16,
  idle = 32
};

// count, bytes: what the event that is shown counted, by its unit (sampled_events.h).
enum class Weight : uint8_t { wall, cpu, samples, count, bytes };
constexpr bool is_time(Weight weight) {
  return weight == Weight::wall || weight == Weight::cpu;
}
constexpr bool is_of_event(Weight weight) {
  return weight == Weight::count || weight == Weight::bytes;
}

// What of the threads' time is shown (work.h). `work`: what they compute, and their waiting, but for that of
// threads that have nothing to do.
enum class Show : uint8_t { everything, work, computing, waiting };

// What a thread did while it was looked at.
enum class Doing : uint8_t {
  computing,           // it ran, or would have, had it had a CPU or the GIL
  waiting,             // within its work
  waiting_for_work,    // idle
  waiting_for_others,  // for threads or processes that are recorded, to which it has handed its work
  waiting_unknown,     // idle or at work: the recording does not say
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

// What a function of C++ or Rust is called: as the format likes it (a picture the short form, with the full
// one to be found by a search; files for machines the full one), or one of the two everywhere.
enum class NativeNames : uint8_t { by_format, full, brief };

struct Choices {
  By by;
  Show show = Show::everything;
  uint8_t states = 0;                       // StateChoice bits; 0: all
  std::optional<std::string> thread_regex;  // as RE2 reads it, searched in "name", "kernel_name" and "tid"
  std::optional<int32_t> pid;
  std::optional<std::string> label_regex;  // searched in the text of labels (time_labels.h)
  Nanoseconds from = 0;                    // since the start of the recording
  Nanoseconds to = std::numeric_limits<Nanoseconds>::max();
  Weight weight = Weight::wall;
  NativeNames native_names = NativeNames::by_format;
  bool all_frames =
      false;  // the interpreter's own C too: what show_native_frames() asks before anything else
};

std::string_view show_name(Show show);  // "work", "computing", "waiting", "everything"

}  // namespace phlox::profile
