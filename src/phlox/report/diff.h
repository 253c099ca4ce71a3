// `phlox diff BEFORE AFTER`: how much longer or shorter the program ran, and which functions and lines took
// other amounts of time. Pure: Profiles in, text out.
//
// Two questions (comparison.h). Of two recordings: do they differ? Sampling is the only error. Of several
// runs on either side: would other runs differ too? Seconds are compared where the recordings are of whole
// runs of a program, seconds a second where they are not; shares are shown, never judged.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "phlox/report/comparison.h"
#include "phlox/report/report.h"

namespace phlox::report {

// What is compared: what a run took, or what it took in a second of the recording.
enum class Per : uint8_t { run, second };

struct DiffOptions {
  profile::Choices choices;  // choices.weight says what is compared
  size_t limit = 15;
  std::optional<Per> per;  // none: run, if all are recordings of whole runs
  double margin = 0.1;     // differences below this part of the larger amount are not reported
};

enum class Question : uint8_t { recordings, runs };

// same, unclear, less, more: comparison.h. Of recordings, `appeared`: in AFTER alone.
enum class Verdict { same, unclear, grew, shrank, appeared, vanished };

// What one function or line weighs before and after. Of runs: on average.
struct Change {
  Estimate before;
  Estimate after;
  Amount before_amount, after_amount;  // as compared: per run, or per second
  double difference = 0;               // after - before, of the amounts
  double low = 0;                      // 99 % interval of it
  double high = 0;
  double error = 0;   // how far, at the strictness of the verdict, sampling may have moved it; of recordings
  double chance = 1;  // of runs
  Verdict verdict = Verdict::unclear;
  std::vector<double> before_runs, after_runs;  // of runs: each
};

struct DiffRow {
  profile::FrameKind kind = profile::FrameKind::python;
  std::string name;  // as text shows it
  std::string full;  // qualified, with all arguments
  std::string file;  // after's where it has it
  int32_t line = 0;  // functions: first line; lines: the line
  std::string module;
  Change self;
  Change total;
};

// One side: of several runs the averages, and words of the first.
struct DiffSide {
  std::string title;
  std::string event;  // that is shown, of recordings that have any
  size_t runs = 1;
  int64_t total = 0;
  uint64_t samples = 0;
  Nanoseconds elapsed = 0;
  Nanoseconds cpu = 0;       // of all that passes, shown or not
  Nanoseconds cpu_wait = 0;  // likewise: time in which threads waited for a CPU
  profile::QualitySummary measured;
  profile::LeftOut left_out;  // by `show`
  std::string quality, warning;
  bool whole_run = false;  // recorded from the program's start to its end
};

struct Diff {
  DiffSide before, after;
  Question question = Question::recordings;
  Per per = Per::run;
  bool decides = true;  // of runs: there are enough of them for any verdict
  bool in_turn = true;  // of runs: neither side was recorded before all of the other
  Margin margin;
  profile::Weight weight = profile::Weight::wall;
  std::string weight_title;  // "wall time", "cache-misses"; of AFTER
  size_t limit = 0;
  Change elapsed, cpu, whole;  // of the program: length, CPU time, and the sum that functions are parts of
  size_t compared = 0;         // functions that weigh enough to be judged
  size_t unclear = 0;          // of them
  size_t differ = 0;
  double seen = 0;      // in each of those that are unclear a difference of this size would have been found
  double farthest = 0;  // no function differs by more than this
  std::vector<DiffRow> functions;  // all: those that differ first, the greatest first
  std::vector<DiffRow> lines;      // likewise
  profile::Show show = profile::Show::everything;
};

bool is_certain(Verdict verdict);

Result<Diff> make_diff(const profile::Profile& before, const profile::Profile& after,
                       const DiffOptions& options);
// Several runs on either side.
using Profiles = std::vector<const profile::Profile*>;
Result<Diff> make_diff(const Profiles& before, const Profiles& after, const DiffOptions& options);

std::string diff_text(const Diff& diff);
std::string diff_markdown(const Diff& diff);
std::string diff_json(const Diff& diff);  // docs/json/diff.schema.json

// 'total(json.loads) > +10%': (self|total)(FUNCTION) then > >= < <= then a limit:
//   +10% -10%        relative change of the amount      +2pp -2pp   change of the share in percentage points
//   10%              share in AFTER                     1.5s 20ms   weight in AFTER       +1.5s -20ms  change
//                                                                   of the weight, a run (on average)
// FUNCTION: a qualified name, or module.name, or file.py:name; * stands for anything. All that match are
// added up.
enum class LimitKind { relative, points, share, weight, weight_change };
struct Condition {
  std::string text;
  bool self = false;
  std::string function;
  bool greater = true;
  bool or_equal = false;
  LimitKind limit_kind = LimitKind::relative;
  double limit = 0;  // 0.1 for 10 %; ns
};
Result<Condition> parse_condition(std::string_view text);

struct ConditionResult {
  bool holds = false;       // the whole 99 % interval is beyond the limit: the build should fail
  bool is_unclear = false;  // the interval contains the limit: does not hold
  bool found = false;  // the function is in one of the recordings; when not, the condition can never hold
  double value = 0;    // what was compared with the limit
  std::string text;    // one sentence
  std::vector<std::string> alike;  // when not found: functions that may have been meant
};
// ErrorKind::usage: a limit that says nothing about what is compared, such as seconds of samples.
Result<ConditionResult> check_condition(const Diff& diff, const Condition& condition);

}  // namespace phlox::report
