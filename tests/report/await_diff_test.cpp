#include "phlox/report/await_diff.h"

#include <gtest/gtest.h>

#include <list>
#include <string>
#include <vector>

#include "phlox/profile/profile.h"
#include "phlox/report/diff.h"
#include "report/schema.h"
#include "support/profile_of.h"

namespace phlox::report {
namespace {

using namespace phlox::profile;
using namespace phlox::view;

constexpr Nanoseconds kMs = 1'000'000;

// A recording whose tasks were sampled for `span`: groups of a coroutine "name:line" with a kind.
struct Recorded {
  explicit Recorded(Nanoseconds span) {
    tasks.put_event_loop(EventLoopId(1), {ProcessId(1), maker.thread("MainThread"), "asyncio"});
    if (span > 0) tasks.put_task_census(TaskCensusId(1), {ProcessId(1), 10, span});
  }
  void put(const std::string& frame, const std::string& kind, Nanoseconds time,
           TaskState state = TaskState::waiting) {
    const TaskStackId stack(static_cast<uint32_t>(tasks.stacks.size() + 1));
    tasks.put_task_stack(stack, {{}, maker.frame(frame)});
    tasks.put_task_time(TaskTimeId(static_cast<uint32_t>(tasks.times.size() + 1)),
                        {EventLoopId(1), stack, state, kind, "", time, 2, 0});
  }
  AwaitRun run() const { return {&profile, &tasks}; }

  Profile profile;
  test::ProfileMaker maker{profile};
  TaskRows tasks;
};

std::vector<std::string> lines(const std::optional<AwaitDiff>& diff) {
  std::vector<std::string> lines;
  if (!diff) return {"none"};
  for (const auto& row : await_diff_table(*diff, 10).rows)
    lines.push_back(row[0] + "|" + row[1] + "|" + row[2] + "|" + row[3] + "|" + row[4]);
  return lines;
}
using Lines = std::vector<std::string>;

TEST(AwaitDiff, has_how_many_tasks_waited_at_a_time_the_largest_change_first) {
  Recorded before(1000 * kMs), after(2000 * kMs);
  before.put("handle:12", "lock", 4000 * kMs);
  before.put("gone:3", "sleep", 1000 * kMs);
  before.put("handle:12", "", 9000 * kMs, TaskState::ready);
  after.put("handle:12", "lock", 60'000 * kMs);
  after.put("fresh:7", "event", 500 * kMs);
  EXPECT_EQ(lines(await_diff({before.run()}, {after.run()})),
            (Lines{"+26.0|4.00|30.0|a lock|handle", "-1.00|1.00|0.00|the end of sleep()|gone",
                   "+0.25|0.00|0.25|an event|fresh"}));
}

TEST(AwaitDiff, knows_a_coroutine_again_whose_lines_moved) {
  Recorded before(1000 * kMs), after(1000 * kMs);
  Frame frame;
  frame.function = frame.qualified_name = "handle";
  frame.file = "/old/app.py";
  frame.first_line = 10;
  frame.line = 12;
  for (auto* one : {&before, &after}) {
    one->put("handle:1", "lock", 2000 * kMs);
    one->profile.emit(one->tasks.stacks[0].frame, frame);
    frame.file = "/new/app.py";
    frame.first_line += 100;
    frame.line += 100;
  }
  const auto diff = await_diff({before.run()}, {after.run()});
  EXPECT_EQ(lines(diff), Lines{"0.00|2.00|2.00|a lock|handle"});
  EXPECT_EQ(diff->groups[0].file, "/new/app.py");
  EXPECT_EQ(diff->groups[0].line, 112);
  // The next line of the coroutine is another place.
  frame.line += 1;
  after.profile.emit(after.tasks.stacks[0].frame, frame);
  EXPECT_EQ(await_diff({before.run()}, {after.run()})->groups.size(), 2u);
}

TEST(AwaitDiff, of_several_runs_is_their_average) {
  Recorded before(1000 * kMs), one(1000 * kMs), other(1000 * kMs);
  one.put("handle:12", "lock", 4000 * kMs);
  EXPECT_EQ(lines(await_diff({before.run()}, {one.run(), other.run()})),
            Lines{"+2.00|0.00|2.00|a lock|handle"});
}

TEST(AwaitDiff, has_verdicts_where_the_sampling_error_is_known) {
  Recorded before(100'000 * kMs), after(100'000 * kMs);
  for (auto* one : {&before, &after}) {
    one->tasks.censuses[0].times = 1000;
    one->put("handle:12", "lock", (one == &before ? 400'000 : 800'000) * kMs);
    one->put("idle:3", "event", 100'000 * kMs);
    one->put("rare:9", "sleep", (one == &before ? 2'000 : 3'000) * kMs);
    for (TaskTime& row : one->tasks.times) row.changes.emplace().bins[0] = 1e9F;
  }
  const auto diff = await_diff({before.run()}, {after.run()});
  ASSERT_TRUE(diff && diff->judged);
  std::vector<std::string> verdicts;
  for (const AwaitChange& row : diff->groups)
    verdicts.push_back(row.name + " " + std::string(verdict_name(row.verdict, diff->question)));
  EXPECT_EQ(verdicts, (std::vector<std::string>{"handle grew", "rare inconclusive", "idle same"}));
  EXPECT_GT(diff->groups[0].found.low, 3.8);
  EXPECT_LT(diff->groups[0].found.high, 4.2);
  const Table table = await_diff_table(*diff, 10);
  EXPECT_NE(table.note.find("1 of 3 differs."), std::string::npos) << table.note;
  EXPECT_EQ(table.rows[0][4], "grew");
  // Tasks that were not read may have waited anywhere.
  before.tasks.censuses[0].ended = 5'000;
  EXPECT_EQ(await_diff({before.run()}, {after.run()})->groups[0].verdict, Verdict::unclear);
  before.tasks.times[1].changes.reset();
  EXPECT_FALSE(await_diff({before.run()}, {after.run()})->judged);
  EXPECT_NE(await_diff_table(*await_diff({before.run()}, {after.run()}), 9).note.find("no verdict"),
            std::string::npos);
}

TEST(AwaitDiff, of_five_runs_of_each_is_judged_by_their_spread) {
  std::list<Recorded> runs;  // they do not move
  std::vector<AwaitRun> before, after;
  for (int i = 0; i < 10; ++i) {
    runs.emplace_back(1000 * kMs);
    runs.back().tasks.censuses[0].times = 100;
    runs.back().put("handle:12", "lock", ((i < 5 ? 4000 : 6000) + i) * kMs);
    runs.back().put("idle:3", "event", (1000 + i % 5) * kMs);
  }
  for (const Recorded& run : runs) (before.size() < 5 ? before : after).push_back(run.run());
  const auto diff = await_diff(before, after);
  ASSERT_TRUE(diff && diff->judged) << "without the sampling error of each";
  EXPECT_EQ(diff->groups[0].verdict, Verdict::grew);
  EXPECT_EQ(diff->groups[1].verdict, Verdict::same);
  EXPECT_LE(diff->groups[0].found.chance, 0.01);
}

TEST(AwaitDiff, is_not_there_where_a_recording_has_no_census) {
  Recorded before(1000 * kMs), after(0);
  before.put("handle:12", "lock", 4000 * kMs);
  after.put("handle:12", "lock", 4000 * kMs);
  EXPECT_EQ(lines(await_diff({before.run()}, {after.run()})), Lines{"none"});
  EXPECT_EQ(lines(await_diff({before.run(), after.run()}, {before.run()})), Lines{"none"});
  EXPECT_EQ(lines(await_diff({}, {before.run()})), Lines{"none"});
}

TEST(AwaitDiff, is_a_part_of_the_difference_in_text_and_json) {
  Recorded before(1000 * kMs), after(1000 * kMs);
  after.put("handle:12", "lock", 4000 * kMs);
  DiffOptions options;
  options.tasks_before.push_back(before.tasks);
  options.tasks_after.push_back(after.tasks);
  const auto diff = make_diff(before.profile, after.profile, options);
  ASSERT_TRUE(diff);
  const std::string json = diff_json(*diff);
  EXPECT_EQ(test::schema_violation(json, "diff.schema.json"), "") << json;
  EXPECT_NE(json.find("\"after_tasks\""), std::string::npos);
  EXPECT_NE(diff_text(*diff).find("What tasks await: how many wait at a time"), std::string::npos);
  EXPECT_EQ(diff_text(*make_diff(before.profile, after.profile, {})).find("What tasks await"),
            std::string::npos);
}

}  // namespace
}  // namespace phlox::report
