// The error of await time, on programs whose timeline is known: sampled twice, it did not change.
#include "phlox/report/await_error.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "phlox/base/spread.h"
#include "phlox/profile/profile.h"
#include "phlox/report/diff.h"
#include "phlox/view/await_time.h"
#include "phlox/view/shown_event.h"
#include "support/profile_of.h"

namespace phlox::report {
namespace {

using namespace phlox::profile;
using namespace phlox::view;

constexpr Nanoseconds kMs = 1'000'000;

// A task waits in a row, from a moment to another.
struct Waits {
  uint32_t row = 0;
  Nanoseconds begin = 0, end = 0;
};
using Timeline = std::vector<Waits>;

constexpr Nanoseconds kLength = 12'000 * kMs;
enum Row : uint32_t { crowd, single, other, phase, kRows };

// 30 tasks that wait together for some 40 ms; 5 tasks that take turns between two rows, each by itself; a
// phase. `slower`: the waits of `single` take this many times as long.
Timeline timeline(uint32_t seed, double slower = 1) {
  std::mt19937 random(seed);
  const auto about = [&](double ms) {
    return static_cast<Nanoseconds>(ms * std::uniform_real_distribution<>(0.5, 1.5)(random) * 1e6);
  };
  Timeline made;
  for (Nanoseconds at = 0; at < kLength; at += about(150)) {
    const Nanoseconds end = at + about(40);
    for (int i = 0; i < 30; ++i) made.push_back({crowd, at, end});
  }
  for (int i = 0; i < 5; ++i) {
    for (Nanoseconds at = about(10); at < kLength;) {
      const Nanoseconds middle = at + about(20 * slower), end = middle + about(30);
      made.push_back({single, at, middle});
      made.push_back({other, middle, end});
      at = end;
    }
  }
  made.push_back({phase, kLength / 4, kLength / 2});
  return made;
}

// What a recording of it holds (sampler/session/task_sums.h), with censuses at random moments.
struct Recorded {
  Recorded(const Timeline& timeline, uint32_t seed) {
    const ThreadId main = maker.thread("MainThread");
    maker.add(main, "main;run", kLength);
    tasks.put_event_loop(EventLoopId(1), {ProcessId(1), main, "asyncio"});
    const char* const frames[] = {"crowd:3", "handle:12", "handle:13", "phase:20"};
    const TaskStackId root(1);
    tasks.put_task_stack(root, {{}, maker.frame("serve:1")});
    for (uint32_t row = 0; row < kRows; ++row)
      tasks.put_task_stack(TaskStackId(row + 2), {root, maker.frame(frames[row])});
    std::mt19937 random(seed);
    std::uniform_real_distribution<> part(0.5, 1.5);
    TaskTime rows[kRows];
    int64_t last[kRows] = {};
    uint64_t number = 0;
    Nanoseconds before = 0;
    TaskCensus census{ProcessId(1)};
    for (Nanoseconds now = 0; now < kLength; now += static_cast<Nanoseconds>(100e6 * part(random))) {
      int64_t found[kRows] = {};
      for (const Waits& one : timeline) found[one.row] += one.begin <= now && now < one.end;
      const Nanoseconds between = now - before;
      for (uint32_t row = 0; row < kRows; ++row) {
        if (!rows[row].changes) rows[row].changes.emplace();
        rows[row].time += between * (found[row] + last[row]) / 2;
        rows[row].seen += static_cast<uint64_t>(found[row]);
        if (now == 0) continue;
        const double sign = (Spread()(uint64_t{seed} << 32 | number) & 1) != 0 ? -1 : 1;
        rows[row].changes->bins[number % 32] +=
            static_cast<float>(sign * static_cast<double>((found[row] - last[row]) * between));
      }
      if (now > 0) ++number;
      std::copy(found, found + kRows, last);
      ++census.times;
      census.span = now;
      before = now;
    }
    tasks.put_task_census(TaskCensusId(1), census);
    for (uint32_t row = 0; row < kRows; ++row) {
      rows[row].loop = EventLoopId(1);
      rows[row].stack = TaskStackId(row + 2);
      rows[row].kind = "lock";
      tasks.put_task_time(TaskTimeId(row + 1), rows[row]);
    }
    EXPECT_TRUE(add_await_time(profile, tasks));
    EXPECT_TRUE(show_event(profile, kAwaitTime));
  }

  Profile profile;
  test::ProfileMaker maker{profile};
  TaskRows tasks;
};

Diff compare(const Recorded& before, const Recorded& after) {
  DiffOptions options;
  options.margin = 0;
  options.tasks_before.push_back(before.tasks);
  options.tasks_after.push_back(after.tasks);
  return *make_diff(before.profile, after.profile, options);
}

const DiffRow* find(const std::vector<DiffRow>& rows, const std::string& name) {
  const auto at =
      std::find_if(rows.begin(), rows.end(), [&](const DiffRow& row) { return row.name == name; });
  return at == rows.end() ? nullptr : &*at;
}

TEST(AwaitError, of_a_set_of_rows_is_that_of_the_changes_of_the_whole_set) {
  TaskRows tasks;
  TaskTime row, other;
  row.changes.emplace().bins[3] = 3;
  row.changes->bins[4] = 4;
  other.changes.emplace().bins[3] = -3;
  EXPECT_DOUBLE_EQ(
      [&] {
        ChangeSum sum;
        sum.add(ChangeSum::bins_of(tasks, row, {}));
        return sum.variance();
      }(),
      0.75 * (9 + 16));
  ChangeSum both;
  both.add(ChangeSum::bins_of(tasks, row, {}));
  both.add(ChangeSum::bins_of(tasks, other, {}));
  EXPECT_DOUBLE_EQ(both.variance(), 0.75 * 16) << "a task moved from one row to the other";
}

TEST(AwaitError, counts_tasks_that_censuses_missed_and_the_end_of_a_process) {
  Profile profile;
  test::ProfileMaker maker(profile);
  Process process = profile.processes().front();
  process.end = 1000 * kMs;
  process.how_ended = "exit 0";
  profile.emit(ProcessId(1), process);
  TaskRows tasks;
  TaskCensus census{ProcessId(1), 10, 1000 * kMs};
  census.ended = 2;
  census.unproved = 1;
  tasks.put_task_census(TaskCensusId(1), census);
  tasks.put_event_loop(EventLoopId(1), {ProcessId(1), {}, "asyncio"});
  TaskTime row;
  row.loop = EventLoopId(1);
  row.at_end = 3;
  tasks.put_task_time(TaskTimeId(1), row);
  const CensusError error = census_error(profile, tasks);
  EXPECT_FALSE(error.is_known) << "a row without its changes";
  EXPECT_DOUBLE_EQ(error.step, 100e6);
  EXPECT_DOUBLE_EQ(error.unseen, 300e6);
  EXPECT_DOUBLE_EQ(ChangeSum::bins_of(tasks, row, error).back(), 300e6);
  process.how_ended = "recording ended";
  profile.emit(ProcessId(1), process);
  EXPECT_DOUBLE_EQ(ChangeSum::bins_of(tasks, row, census_error(profile, tasks)).back(), 0);
}

// With a margin of 0, whatever differs is reported.
TEST(AwaitError, says_of_two_samplings_of_one_program_that_they_do_not_differ) {
  int alarms = 0, intervals = 0, held = 0, group_alarms = 0;
  for (uint32_t pair = 0; pair < 150; ++pair) {
    const Timeline same = timeline(pair);
    const Recorded before(same, 2 * pair + 1), after(same, 2 * pair + 2);
    const Diff diff = compare(before, after);
    EXPECT_TRUE(diff.of_tasks);
    alarms += diff.differ > 0;
    for (const DiffRow& row : diff.functions) {
      ++intervals;
      held += row.total.low <= 0 && 0 <= row.total.high;
    }
    ASSERT_TRUE(diff.awaits && diff.awaits->judged);
    group_alarms += is_certain(diff.awaits->groups.front().verdict);
  }
  EXPECT_LE(alarms, 2);
  EXPECT_LE(group_alarms, 2);
  EXPECT_GE(held, intervals * 98 / 100);
}

TEST(AwaitError, sees_waits_that_got_longer_and_where) {
  int lines = 0, wrong = 0;
  for (uint32_t pair = 0; pair < 50; ++pair) {
    const Recorded before(timeline(pair), 2 * pair + 1), after(timeline(pair, 4), 2 * pair + 2);
    const Diff diff = compare(before, after);
    const auto line =
        std::find_if(diff.lines.begin(), diff.lines.end(), [](const DiffRow& row) { return row.line == 12; });
    ASSERT_NE(line, diff.lines.end());
    lines += line->total.verdict == Verdict::grew;
    for (const char* name : {"crowd", "phase"})
      wrong += is_certain(find(diff.functions, name)->total.verdict);
  }
  EXPECT_GE(lines, 49);
  EXPECT_LE(wrong, 1);
}

}  // namespace
}  // namespace phlox::report
