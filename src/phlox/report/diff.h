// `phlox diff BEFORE AFTER`: how much longer or shorter the program ran, and which functions and lines took
// other amounts of time. Pure: Profiles in, text out.
//
// Two questions (comparison.h). Two recordings: do they differ? Sampling is the only error. Several runs on
// either side: would other runs differ too? Seconds are compared if the recordings are of whole runs of a
// program, otherwise seconds a second. Shares are shown, never judged.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "phlox/report/await_diff.h"
#include "phlox/report/comparison.h"
#include "phlox/report/report.h"
#include "phlox/report/verdict.h"

namespace phlox::report {

// What is compared: the time of a run, or the time in each second of recording.
enum class Per : uint8_t { run, second };

struct DiffOptions {
  view::Choices choices;  // choices.weight is compared
  size_t limit = 15;
  std::optional<Per> per;  // none: run, if all recordings are of whole runs
  // What the tasks of each recording awaited, in the order of the recordings; empty: not compared. If the
  // profiles show await time (view/await_time.h), it is of these rows.
  std::vector<profile::TaskRows> tasks_before, tasks_after;
  double margin = 0.1;  // differences below this part of the larger amount are not reported
};

// The weight of one function or line before and after. Of runs: the average.
struct Change {
  Estimate before;
  Estimate after;
  Amount before_amount, after_amount;  // as compared: per run, or per second
  double difference = 0;               // after - before, of the amounts
  double low = 0;                      // 99 % interval of it
  double high = 0;
  // How far sampling may have moved it, at the strictness of the verdict; of recordings.
  double error = 0;
  double chance = 1;  // of runs
  Verdict verdict = Verdict::unclear;
  std::vector<double> before_runs, after_runs;  // of runs: each
};

struct DiffRow {
  profile::FrameKind kind = profile::FrameKind::python;
  std::string name;  // as text shows it
  std::string full;  // qualified, with all arguments
  std::string file;  // AFTER's if it has one
  int32_t line = 0;  // functions: first line; lines: the line
  std::string module;
  Change self;
  Change total;
};

// One side: for several runs their averages, and the texts of the first.
struct DiffSide {
  std::string title;
  std::string event;  // the event that is shown, if the recording has any
  size_t runs = 1;
  int64_t total = 0;
  uint64_t samples = 0;
  uint64_t censuses = 0;  // of await time
  Nanoseconds elapsed = 0;
  Nanoseconds cpu = 0;       // of all samples that pass, shown or not
  Nanoseconds cpu_wait = 0;  // time in which these threads waited for a CPU
  view::QualitySummary measured;
  view::LeftOut left_out;  // by `show`
  Nanoseconds left_out_wall = 0;
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
  view::Weight weight = view::Weight::wall;
  bool of_tasks = false;     // await time is compared
  std::string weight_title;  // "wall time", "cache-misses"; of AFTER
  size_t limit = 0;
  Change elapsed, cpu, whole;  // of the program: length, CPU time, and the sum that functions are parts of
  size_t compared = 0;         // functions with enough weight to be judged
  size_t unclear = 0;          // of these, the unclear ones
  size_t differ = 0;
  double seen = 0;                 // each of the unclear functions would have shown a difference of this size
  double farthest = 0;             // no function differs by more than this
  std::vector<DiffRow> functions;  // all: those that differ first, the largest difference first
  std::vector<DiffRow> lines;      // in the same order
  view::Show show = view::Show::everything;
  std::optional<AwaitDiff> awaits;  // none: not known of all recordings; whatever the choices
};

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
// FUNCTION: a qualified name, or module.name, or file.py:name; * matches anything. All matches are added up.
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
  bool found = false;       // the function is in one of the recordings; if not, the condition can never hold
  double value = 0;         // the value that was compared with the limit
  std::string text;         // one sentence
  std::vector<std::string> alike;  // if not found: functions with similar names
};
// ErrorKind::usage: a limit that does not fit the compared quantity, such as seconds for samples.
Result<ConditionResult> check_condition(const Diff& diff, const Condition& condition);

}  // namespace phlox::report
