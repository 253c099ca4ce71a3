// Await time by group: the outermost coroutine of a task, the line of its await, and what is awaited in the
// end. For each event loop. Pure.
#pragma once

#include <string>
#include <tuple>
#include <vector>

#include "phlox/profile/task_time.h"
#include "phlox/report/json_text.h"
#include "phlox/view/await_time.h"
#include "phlox/view/frame_labels.h"

namespace phlox::report {

// Tasks of one outermost coroutine that wait at one line of it.
struct AwaitGroup {
  profile::FrameId frame;  // none: a task without a coroutine, or one that was counted without its stack
  std::string kind, awaited;
  Nanoseconds time = 0;
  uint64_t seen = 0;
  Nanoseconds longest = 0;
  uint64_t at_end = 0;         // tasks that the last census found there
  uint64_t went_on = 0;        // TaskTime::went_on
  profile::TaskStackId stack;  // the one of its chains with the most time
  std::vector<uint32_t> rows;  // of TaskRows::times
};

struct LoopAwaits {
  profile::EventLoopId loop;
  Nanoseconds waiting = 0, ready = 0, running = 0;  // of all its tasks together
  std::vector<AwaitGroup> groups;                   // waiting; the most time first
};

// Loops that had a task, the most waiting first.
std::vector<LoopAwaits> loop_awaits(const profile::TaskRows& rows);

// Totals of one process over its recorders.
profile::TaskCensus census_of(const profile::TaskRows& rows, profile::ProcessId process);

// Average time between two censuses; 0: there was none.
Nanoseconds between_censuses(uint64_t times, Nanoseconds span);

// Fills the members of a row that say which group it is: name, file and line of the coroutine, kind, awaited
// and words of the wait target.
template <class Row>
void name_group(Row& row, const profile::Profile& profile, const AwaitGroup& group) {
  if (group.frame) {
    const auto label = view::line_label(profile, group.frame);
    std::tie(row.name, row.file, row.line) = std::tie(label.name, label.file, label.line);
  }
  row.kind = group.kind;
  row.awaited = group.awaited;
  row.words = view::awaited_by_task_words(group.kind, group.awaited);
}
// The same members, as JSON.
template <class Row>
void write_group(JsonText& json, const Row& row) {
  json.text("name", row.name);
  json.text("file", row.file);
  json.integer("line", row.line);
  json.text("kind", row.kind);
  json.text("awaited", row.awaited);
  json.text("words", row.words);
}

// Outermost first.
std::vector<profile::FrameId> task_frames(const profile::TaskRows& rows, profile::TaskStackId stack);

}  // namespace phlox::report
