#include "phlox/recording/task_tables.h"

#include <fmt/format.h>
#include <sqlite3.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <string_view>

#include "phlox/recording/columns.h"
#include "phlox/recording/database.h"
#include "phlox/recording/opened_recording.h"

namespace phlox::recording {
namespace {

constexpr uint64_t kMostTaskText = uint64_t{64} << 20;  // names of kinds and classes
constexpr size_t kAnyRow = std::numeric_limits<uint32_t>::max();
// So that sums cannot overflow.
constexpr int64_t kMostInAll = std::numeric_limits<int64_t>::max() / 4;

constexpr int64_t kMostTasks = int64_t{1} << 48;
constexpr float kMostChange = 1e30F;  // task ns; the sum of the squares of some thousand is a double

class ReadingTasks {
 public:
  ReadingTasks(sqlite3* database, const std::string& path) : database_(database), path_(path) {}

  Result<profile::TaskRows> run() {
    if (!has_table("task_time")) return std::move(rows_);
    for (auto part :
         {&ReadingTasks::censuses, &ReadingTasks::loops, &ReadingTasks::stacks, &ReadingTasks::times}) {
      if (auto done = (this->*part)(); !done) return fail(done);
    }
    if (!has_groups()) return std::move(rows_);
    for (auto part : {&ReadingTasks::groups, &ReadingTasks::ready}) {
      if (auto done = (this->*part)(); !done) return fail(done);
    }
    for (const auto& [table, part] : {std::pair("task_waiter", &ReadingTasks::waiters),
                                      {"job_waiter", &ReadingTasks::job_waiters},
                                      {"request", &ReadingTasks::requests},
                                      {"request_part", &ReadingTasks::request_parts}}) {
      if (!has_table(table)) continue;
      if (auto done = (this->*part)(); !done) return fail(done);
    }
    return std::move(rows_);
  }

 private:
  // Older recordings lack them, and the columns of task_time that came with them.
  bool has_groups() const { return has_table("ready_tasks"); }
  bool has_table(std::string_view name) const {
    return first_number(database_,
                        fmt::format("SELECT 1 FROM sqlite_schema WHERE name = '{}' AND type = 'table'", name))
        .has_value();
  }

  bool has_changes() const {
    return first_number(database_, "SELECT 1 FROM pragma_table_info('task_time') WHERE name = 'changes'")
        .has_value();
  }

  // Empty: all are 0.
  static bool read_changes(std::string_view bytes, profile::TaskTime& row) {
    auto& bins = row.changes.emplace().bins;
    if (bytes.empty()) return true;
    if (bytes.size() != sizeof bins) return false;
    std::memcpy(bins.data(), bytes.data(), sizeof bins);
    return std::all_of(bins.begin(), bins.end(), [](float one) { return std::abs(one) < kMostChange; });
  }

  template <class OneRow>
  Result<void> each(std::string_view table, std::string_view columns, OneRow&& row) {
    const Statement statement =
        prepare(database_, fmt::format("SELECT {} FROM {} ORDER BY rowid", columns, table));
    if (!statement) return damaged(path_, sqlite3_errmsg(database_));
    Columns values(statement.get(), table, text_left_);
    for (;;) {
      const int step = sqlite3_step(statement.get());
      if (step == SQLITE_DONE) return {};
      if (step != SQLITE_ROW) return damaged(path_, sqlite3_errmsg(database_));
      values.next_row();
      values.row_id();
      row(values);
      if (values.failed()) return damaged(path_, values.wrong());
    }
  }

  Result<void> censuses() {
    return each(
        "task_census",
        "id, process, times, span_ns, phlox_cpu_ns, tasks, unproved, ended, beyond, without_stack, "
        "problem",
        [this](Columns& c) {
          profile::TaskCensus row;
          row.process = c.reference<profile::ProcessTag>(kAnyRow);
          row.times = number(c);
          row.span = c.integer(0, kMaximumTime);
          row.cost = c.integer(0, kMaximumTime);
          for (uint64_t* one : {&row.tasks, &row.unproved, &row.ended, &row.beyond, &row.without_stack})
            *one = number(c);
          row.problem = c.optional_text();
          if (!c.failed()) rows_.put_task_census(profile::TaskCensusId(c.row()), row);
        });
  }
  // The sum of eight of them in some thousand rows does not overflow.
  static uint64_t number(Columns& c) { return static_cast<uint64_t>(c.integer(0, kMostTasks)); }

  Result<void> loops() {
    return each("event_loop", "id, process, thread, type", [this](Columns& c) {
      profile::EventLoop row;
      row.process = c.reference<profile::ProcessTag>(kAnyRow);
      row.thread = c.optional_reference<profile::ThreadTag>(kAnyRow);
      row.type = c.text();
      if (!c.failed()) rows_.put_event_loop(profile::EventLoopId(c.row()), row);
    });
  }

  Result<void> stacks() {
    return each("task_stack", "id, parent, frame", [this](Columns& c) {
      profile::TaskStack row;
      row.parent = c.optional_reference<profile::TaskStackTag>(c.row() - 1);
      row.frame = c.reference<profile::FrameTag>(kAnyRow);
      if (!c.failed()) rows_.put_task_stack(profile::TaskStackId(c.row()), row);
    });
  }

  Result<void> times() {
    int64_t time_left = kMostInAll, seen_left = kMostInAll;
    return each(
        "task_time",
        fmt::format("id, loop, stack, state, kind, awaited, time_ns, seen, longest_ns, {}, {}",
                    has_groups() ? "at_end, went_on" : "NULL, NULL", has_changes() ? "changes" : "NULL"),
        [&](Columns& c) {
          profile::TaskTime row;
          row.loop = c.reference<profile::EventLoopTag>(rows_.loops.size());
          row.stack = c.optional_reference<profile::TaskStackTag>(rows_.stacks.size());
          row.state = c.value(profile::TaskState::running);
          row.kind = c.optional_text();
          row.awaited = c.optional_text();
          row.time = c.integer(0, time_left);
          row.seen = static_cast<uint64_t>(c.integer(0, seen_left));
          row.longest = c.integer(0, kMaximumTime);
          for (uint64_t* one : {&row.at_end, &row.went_on})
            *one = static_cast<uint64_t>(c.optional_integer(0, kMostTasks));
          if (const auto bytes = c.optional_blob(); bytes && !read_changes(*bytes, row))
            c.reject_row("has changes that are no such numbers");
          if (c.failed()) return;
          time_left -= row.time;
          seen_left -= static_cast<int64_t>(row.seen);
          rows_.put_task_time(profile::TaskTimeId(c.row()), row);
        });
  }

  Result<void> groups() {
    return each("task_group",
                "id, loop, frame, lasted_ns, times, first, last, begun, rises, gone, mean_begin_ns, "
                "last_begin_ns, unobserved",
                [this](Columns& c) {
                  profile::TaskGroup row;
                  row.loop = c.reference<profile::EventLoopTag>(rows_.loops.size());
                  row.frame = c.reference<profile::FrameTag>(kAnyRow);
                  row.lasted = c.integer(0, kMaximumTime);
                  for (uint64_t* one : {&row.times, &row.first, &row.last, &row.begun, &row.rises, &row.gone})
                    *one = number(c);
                  row.mean_begin = c.integer(0, kMaximumTime);
                  row.last_begin = c.integer(0, kMaximumTime);
                  row.unobserved = number(c);
                  if (!c.failed()) rows_.put_task_group(profile::TaskGroupId(c.row()), row);
                });
  }

  Result<void> ready() {
    return each("ready_tasks", "id, loop, time_ns, took_ns, tasks", [this](Columns& c) {
      profile::ReadyTasks row;
      row.loop = c.reference<profile::EventLoopTag>(rows_.loops.size());
      row.time = c.time();
      row.took = c.integer(0, kMaximumTime);
      row.tasks = number(c);
      if (!c.failed()) rows_.put_ready_tasks(profile::ReadyTasksId(c.row()), row);
    });
  }

  Result<void> waiters() {
    int64_t seen_left = kMostInAll;
    return each("task_waiter", "id, task_group, stack, seen", [&](Columns& c) {
      profile::TaskWaiter row;
      row.group = c.reference<profile::TaskGroupTag>(rows_.groups.size());
      row.stack = c.optional_reference<profile::TaskStackTag>(rows_.stacks.size());
      row.seen = static_cast<uint64_t>(c.integer(0, seen_left));
      if (c.failed()) return;
      seen_left -= static_cast<int64_t>(row.seen);
      rows_.put_task_waiter(profile::TaskWaiterId(c.row()), row);
    });
  }

  Result<void> job_waiters() {
    int64_t seen_left = kMostInAll;
    return each("job_waiter", "id, process, frame, stack, seen", [&](Columns& c) {
      profile::JobWaiter row;
      row.process = c.reference<profile::ProcessTag>(kAnyRow);
      row.frame = c.reference<profile::FrameTag>(kAnyRow);
      row.stack = c.optional_reference<profile::TaskStackTag>(rows_.stacks.size());
      row.seen = static_cast<uint64_t>(c.integer(0, seen_left));
      if (c.failed()) return;
      seen_left -= static_cast<int64_t>(row.seen);
      rows_.put_job_waiter(profile::JobWaiterId(c.row()), row);
    });
  }

  Result<void> requests() {
    return each("request",
                "id, loop, earliest_begin_ns, latest_begin_ns, earliest_end_ns, latest_end_ns, seen",
                [this](Columns& c) {
                  profile::Request row;
                  row.loop = c.reference<profile::EventLoopTag>(rows_.loops.size());
                  row.earliest_begin = c.optional_time();
                  row.latest_begin = c.time();
                  row.earliest_end = c.time();
                  row.latest_end = c.optional_time();
                  row.seen = number(c);
                  if (!c.failed()) rows_.put_request(profile::RequestId(c.row()), row);
                });
  }

  Result<void> request_parts() {
    return each("request_part", "id, request, task_time, awaited, time_ns", [this](Columns& c) {
      profile::RequestPart row;
      row.request = c.reference<profile::RequestTag>(rows_.requests.size());
      row.time = c.optional_reference<profile::TaskTimeTag>(rows_.times.size());
      row.awaited = c.integer(0, 1) != 0;
      row.duration = c.integer(0, kMaximumTime);
      if (!c.failed()) rows_.put_request_part(profile::RequestPartId(c.row()), row);
    });
  }

  sqlite3* database_;
  const std::string& path_;
  uint64_t text_left_ = kMostTaskText;
  profile::TaskRows rows_;
};

}  // namespace

Result<profile::TaskRows> read_tasks(const std::string& path) {
  const auto recording = open_recording(path);
  if (!recording) return fail(recording);
  return ReadingTasks(recording->database.get(), path).run();
}

Result<void> check_tasks(const profile::TaskRows& rows, const profile::Profile& profile,
                         const std::string& path) {
  const auto is_there = [](const auto& id, const auto& table) { return id.value <= table.size(); };
  const bool sound =
      std::all_of(rows.censuses.begin(), rows.censuses.end(),
                  [&](const auto& row) { return is_there(row.process, profile.processes()); }) &&
      std::all_of(rows.loops.begin(), rows.loops.end(),
                  [&](const auto& row) {
                    return is_there(row.process, profile.processes()) &&
                           is_there(row.thread, profile.threads());
                  }) &&
      std::all_of(rows.stacks.begin(), rows.stacks.end(),
                  [&](const auto& row) { return is_there(row.frame, profile.frames()); }) &&
      std::all_of(rows.groups.begin(), rows.groups.end(),
                  [&](const auto& row) { return is_there(row.frame, profile.frames()); }) &&
      std::all_of(rows.job_waiters.begin(), rows.job_waiters.end(), [&](const auto& row) {
        return is_there(row.process, profile.processes()) && is_there(row.frame, profile.frames());
      });
  if (sound) return {};
  return damaged(path, "a row of its tasks refers to a process, a thread or a frame that is not there");
}

}  // namespace phlox::recording
