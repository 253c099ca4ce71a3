// What tasks awaited before and after: how many waited at a time, by group (await_groups.h). A group is the
// same on both sides if its coroutine is (by qualified name and the last part of its file's path), the await
// is as far from the coroutine's first line, and the wait target is of the same kind and class. Judged as
// functions are (comparison.h), by the sampling error of await time (await_error.h). Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "phlox/profile/profile.h"
#include "phlox/profile/task_time.h"
#include "phlox/report/json_text.h"
#include "phlox/report/table.h"
#include "phlox/report/verdict.h"

namespace phlox::report {

// One recording.
struct AwaitRun {
  const profile::Profile* profile;
  const profile::TaskRows* tasks;
};

// How often Phlox looked, in all runs together.
struct AwaitSide {
  uint64_t times = 0;
  Nanoseconds span = 0;
};

struct AwaitChange {
  std::string name;  // of the outermost coroutine; empty: not known
  std::string file;  // AFTER's if it has one, as the line
  int32_t line = 0;
  std::string kind, awaited;  // as in docs/json/dump.schema.json
  std::string words;
  double before = 0, after = 0;  // tasks at a time, the average of the runs
  Comparison found;              // of these; the outcome only if it is judged
  Verdict verdict = Verdict::unclear;
};

struct AwaitDiff {
  AwaitSide before, after;
  Question question = Question::recordings;
  // Of recordings: false if older versions of Phlox made them. Of runs: there are enough of them.
  bool judged = false;
  std::vector<AwaitChange> groups;  // those that differ first, then the largest difference
};

// None: a recording has no census of tasks.
std::optional<AwaitDiff> await_diff(const std::vector<AwaitRun>& before, const std::vector<AwaitRun>& after,
                                    double margin = 0.1);

Table await_diff_table(const AwaitDiff& diff, size_t limit);
void write_await_diff(JsonText& json, const AwaitDiff& diff, size_t limit);

}  // namespace phlox::report
