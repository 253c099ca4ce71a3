// `phlox diff BEFORE AFTER`: which functions and lines take another share of their recording than before, and
// which of these differences are more than noise. Pure: two Profiles in, text out.
//
// Shares are compared, so that recordings of different length can be; the absolute weights stand beside them.
// Each difference has a 99 % interval, from the blocks of both recordings. It is called noise unless it is so
// large that chance makes one of that size in one of a hundred comparisons of equal programs, all functions
// taken together (Bonferroni).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "phlox/report/report.h"

namespace phlox::report {

struct DiffOptions {
  profile::Choices choices;  // choices.weight says by what is normalised
  size_t limit = 15;
};

enum class Verdict { noise, grew, shrank, appeared, vanished };

// What one function or line weighs before and after.
struct Change {
  Estimate before;
  Estimate after;
  double difference = 0;  // after.share - before.share
  double low = 0;         // 99 % interval of it
  double high = 0;
  double error = 0;  // standard error of it
  Verdict verdict = Verdict::noise;
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

struct Diff {
  std::string before_title, after_title;
  profile::Weight weight = profile::Weight::wall;
  std::string weight_title;               // "wall time", "cache-misses"; of AFTER
  std::string before_event, after_event;  // that are shown, of recordings that have any
  int64_t before_total = 0, after_total = 0;
  uint64_t before_samples = 0, after_samples = 0;
  Nanoseconds before_elapsed = 0, after_elapsed = 0;
  size_t limit = 0;
  size_t noise = 0;                // functions whose differences are noise
  std::vector<DiffRow> functions;  // all, the greatest certain difference first, then the noise
  std::vector<DiffRow> lines;      // likewise
  profile::QualitySummary before_measured, after_measured;
  profile::Show show = profile::Show::everything;
  profile::LeftOut before_left_out, after_left_out;  // by `show`
  std::string before_quality, after_quality, before_warning, after_warning;
};

Result<Diff> make_diff(const profile::Profile& before, const profile::Profile& after,
                       const DiffOptions& options);

std::string diff_text(const Diff& diff);
std::string diff_markdown(const Diff& diff);
std::string diff_json(const Diff& diff);  // docs/json/diff.schema.json

// 'total(json.loads) > +10%': (self|total)(FUNCTION) then > >= < <= then a limit:
//   +10% -10%        relative change of the share       +2pp -2pp   change of the share in percentage points
//   10%              share in AFTER                     1.5s 20ms   weight in AFTER       +1.5s -20ms  change
//   of the weight
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
  bool holds = false;  // the difference is beyond the limit: the build should fail
  bool is_noise =
      false;           // beyond the limit, but its 99 % interval says that this may be chance: does not hold
  bool found = false;  // the function is in one of the recordings; when not, the condition can never hold
  double value = 0;    // what was compared with the limit
  std::string text;    // one sentence
  std::vector<std::string> alike;  // when not found: functions that may have been meant
};
// ErrorKind::usage: a limit that says nothing about what is compared, such as seconds of samples.
Result<ConditionResult> check_condition(const Diff& diff, const Condition& condition);

}  // namespace phlox::report
