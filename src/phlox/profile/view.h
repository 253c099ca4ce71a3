// The choices of a view, the same for every output, and the one place that turns samples into totals.
// Pure: takes a Profile, gives numbers.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "phlox/base/result.h"
#include "phlox/profile/profile.h"

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

enum class Weight : uint8_t { wall, cpu, samples };

// What of the threads' time is shown (work.h). `work`: what they compute, and their waiting, but for that of
// threads that have nothing to do.
enum class Show : uint8_t { everything, work, computing, waiting };

// What a thread did while it was looked at. computing: it ran, or would have, had it had a CPU or the GIL.
enum class Doing : uint8_t { computing, waiting, waiting_for_work };
inline constexpr size_t kDoings = 3;
constexpr bool is_shown(Doing doing, Show show) {
  switch (show) {
    case Show::everything:
      return true;
    case Show::work:
      return doing != Doing::waiting_for_work;
    case Show::computing:
      return doing == Doing::computing;
    case Show::waiting:
      return doing != Doing::computing;
  }
  return true;
}

// Threads by name, as another recording's rule found them (WorkRule::names).
struct ThreadNames {
  std::vector<std::string> working, whole;  // sorted
};

// What a function of C++ or Rust is called: as the format likes it (a picture the short form, with the full
// one to be found by a search; files for machines the full one), or one of the two everywhere.
enum class NativeNames : uint8_t { by_format, full, brief };

struct Choices {
  By by;
  Show show = Show::everything;
  ThreadNames known;                        // of a recording that this one is compared with
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

Result<By> parse_by(std::string_view text);                     // "function", "line,thread,process"
Result<uint8_t> parse_states(std::string_view text);            // "running,gil-waits"
Result<Weight> parse_weight(std::string_view text);             // "wall" | "cpu" | "samples"
Result<NativeNames> parse_native_names(std::string_view text);  // "full" | "short"
Result<Show> parse_show(std::string_view text);  // "work" | "computing" | "waiting" | "everything"
std::string_view show_name(Show show);
// "2s..5s", "..500ms", "1.5..": numbers are seconds unless they carry ns, us, ms, s, m.
struct TimeRange {
  Nanoseconds from = 0;
  Nanoseconds to = std::numeric_limits<Nanoseconds>::max();
};
Result<TimeRange> parse_time_range(std::string_view text);

// What a box of a flame graph stands for. Two stacks share a node when their labels are equal up to there.
struct Label {
  FrameKind kind = FrameKind::python;
  std::string name;  // what is drawn: qualified name; "Thread worker-1 (4711)"; "python3 app.py (pid 12)"
  std::string file = {};    // "" where there is none
  int32_t line = 0;         // by line: the line; by function: the first line of the function; 0: none
  std::string module = {};  // what colours go by: top package or module of a Python file ("json", "numpy",
                            // "app"), of a native function its library ("libc"); see view.cpp
  std::string full = {};    // the name with namespaces, template arguments and all; "": `name` is that
  // With By::place only.
  ModuleId module_id = {};  // native: the row of its library
  int32_t first_line = 0;   // by line: of the function
  uint64_t address = 0;     // by line: of a native frame, as the module's file states it

  const std::string& whole_name() const { return full.empty() ? name : full; }

  friend bool operator==(const Label&, const Label&) = default;
};

struct CallNode {
  uint32_t parent = 0;   // index; the root (index 0) is its own parent
  uint32_t label = 0;    // index into labels
  int64_t self = 0;      // weight of samples that end here
  int64_t total = 0;     // self and everything beneath
  uint64_t samples = 0;  // looks beneath (not stretches)
};

// What of a node's weight is of one Doing.
struct NodePart {
  int64_t self = 0;
  uint64_t samples = 0;  // beneath
};

// Parents before children, children of a node ordered by label name. Node 0 is "all". Rejected time lies
// beneath one marker node under the root, whatever `by` says; time without any Python frame beneath a marker
// of its own.
struct CallTree {
  std::vector<Label> labels;
  std::vector<CallNode> nodes;
  int64_t total = 0;     // weight of all samples that passed, rejected ones included
  int64_t rejected = 0;  // weight of the rejected ones among them (they sit under one marker node)
  uint64_t samples = 0;  // looks that passed
  // Of build_whole_call_tree() only: by node, what was done, shown or not (as Doing is numbered).
  std::vector<std::array<NodePart, kDoings>> parts;
};

Result<CallTree> build_call_tree(const Profile& profile, const Choices& choices);
// The same totals, with the nodes of what `choices.show` does not show as well (their totals are 0), and
// `parts`: what a picture needs whose reader may choose again.
Result<CallTree> build_whole_call_tree(const Profile& profile, const Choices& choices);

// The parts of which it is made, for outputs that need more than one tree.

// When the recording began: what Choices::from and to count from.
Nanoseconds recording_start(const Profile& profile);

// Which samples pass, and with how much: a stretch that is partly inside the time range counts by its
// overlap.
class WorkRule;

class SampleFilter {
 public:
  static Result<SampleFilter> make(const Profile& profile, const Choices& choices);
  // One that tells what was done (Part::doing) though everything is shown.
  static Result<SampleFilter> make_judging(const Profile& profile, const Choices& choices);
  struct Part {
    bool passes = false;
    // Without a rule (make() for Show::everything): computing.
    Doing doing = Doing::computing;
    Nanoseconds start = 0;  // of the overlap
    Nanoseconds wall = 0;
    Nanoseconds cpu = 0;
    int64_t samples = 0;  // looks; at least 1 of a stretch that passes
    int64_t weight = 0;   // one of the three, as chosen
  };
  Part part(const Sample& sample) const;
  // Without looking at `show`.
  Part part_of_everything(const Sample& sample) const;

 private:
  static Result<SampleFilter> make(const Profile& profile, const Choices& choices, bool judging);

  std::shared_ptr<const WorkRule> rule_;
  Show show_ = Show::everything;
  std::vector<bool> threads_;  // by id - 1
  uint8_t states_ = 0;
  Weight weight_ = Weight::wall;
  Nanoseconds from_ = 0;
  Nanoseconds to_ = 0;
};

// As the choices want it; what a tree made with them has.
Label frame_label(const Profile& profile, FrameId frame, const Choices& choices);
// With the names by_format.
Label function_label(const Profile& profile, FrameId frame);
Label line_label(const Profile& profile, FrameId frame);
std::string thread_label(const Thread& thread);     // "Thread worker-1 (4711)"
std::string process_label(const Process& process);  // "python3 app.py (pid 12)"
// Top package or module of a Python file: ".../site-packages/numpy/core/x.py" is numpy,
// ".../lib/python3.12/json/decoder.py" json,
// "/srv/app/main.py" main, "/srv/app/__init__.py" app.
std::string module_of_file(std::string_view file);

}  // namespace phlox::profile
