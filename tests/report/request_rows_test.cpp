#include "phlox/report/request_rows.h"

#include <gtest/gtest.h>

#include "phlox/report/report.h"
#include "phlox/view/prepared.h"
#include "support/tasks_of.h"

namespace phlox::report {
namespace {

using namespace profile;
using test::kFastApi;

constexpr Nanoseconds kMs = 1'000'000;

class RequestRows : public testing::Test, public test::TasksOf {
 protected:
  RequestRows() { maker.add(thread, "main:3", 5'000 * kMs); }

  TaskTimeId time(const std::vector<std::string>& frames, TaskState state, const std::string& kind = "") {
    stack(frames);
    TaskTime& row = rows.times.back();
    row.state = state;
    row.kind = kind;
    return TaskTimeId(static_cast<uint32_t>(rows.times.size()));
  }
  // Milliseconds since the recording began.
  RequestId request(int64_t earliest_begin, int64_t latest_begin, int64_t earliest_end, int64_t latest_end) {
    Request row{EventLoopId(1),
                start() + earliest_begin * kMs,
                start() + latest_begin * kMs,
                start() + earliest_end * kMs,
                start() + latest_end * kMs,
                5};
    if (earliest_begin < 0) row.earliest_begin.reset();
    if (latest_end < 0) row.latest_end.reset();
    const RequestId id(static_cast<uint32_t>(rows.requests.size() + 1));
    rows.put_request(id, row);
    return id;
  }
  void part(RequestId request, TaskTimeId time, bool awaited, Nanoseconds duration) {
    rows.put_request_part(RequestPartId(static_cast<uint32_t>(rows.request_parts.size() + 1)),
                          {request, time, awaited, duration});
  }
  Nanoseconds start() const { return view::recording_start(profile); }
  Report made(view::Choices choices = {}, size_t limit = 15) const {
    ReportOptions options;
    options.choices = std::move(choices);
    options.choices.by.endpoint = true;
    options.limit = limit;
    options.tasks = &rows;
    Profile shown = profile;
    view::prepare_tasks(shown, rows, options.choices);
    EXPECT_TRUE(view::prepare_view(shown, options.choices, view::Inherited::hidden));
    return *make_report(shown, options);
  }
  std::vector<std::string> frames(const std::string& handler) const {
    return {"run_asgi", kFastApi, handler};
  }
};

const std::string kSleep = "/usr/lib/python3.12/asyncio/tasks.py/sleep";

TEST_F(RequestRows, the_slowest_comes_first_with_its_parts_beneath) {
  const auto fast = request(1000, 1100, 1200, 1300);
  part(fast, time(frames("index:3"), TaskState::running), false, 150 * kMs);
  const auto slow = request(2000, 2100, 3900, 4000);
  auto in_sleep = frames("dashboard:12");
  in_sleep.push_back(kSleep + ":5");
  auto same_line = frames("dashboard:12");
  same_line.push_back(kSleep + ":6");
  part(slow, time(frames("dashboard:14"), TaskState::waiting, "gather"), false, 300 * kMs);
  part(slow, time(in_sleep, TaskState::waiting, "sleep"), false, 1'000 * kMs);
  part(slow, time(same_line, TaskState::waiting, "sleep"), false, 500 * kMs);
  part(slow, time(frames("dashboard:12"), TaskState::ready), false, 100 * kMs);
  part(slow, time({"price:7"}, TaskState::waiting, "lock"), true, 600 * kMs);
  part(slow, {}, false, 0);
  const Report report = made();
  const Table table = request_table(report);
  ASSERT_EQ(table.rows.size(), 5u);
  using Row = std::vector<std::string>;
  EXPECT_EQ(table.rows[0], (Row{"2.00 to 2.10 s", "1.80 s to 2.00 s", "1.50 s", "the end of sleep()",
                                "dashboard (app.py:12)", "itself", "dashboard"}));
  EXPECT_EQ(table.rows[1],
            (Row{"", "", "300 ms", "tasks in gather()", "dashboard (app.py:14)", "itself", ""}));
  EXPECT_EQ(table.rows[2], (Row{"", "", "100 ms", "ready to run", "dashboard (app.py:12)", "itself", ""}));
  EXPECT_EQ(table.rows[3], (Row{"", "", "600 ms", "a lock", "price (app.py:7)", "tasks", ""}));
  EXPECT_EQ(table.rows[4], (Row{"1.00 to 1.10 s", "100 ms to 300 ms", "150 ms", "running", "index (app.py:3)",
                                "itself", "index"}));
}

TEST_F(RequestRows, without_a_known_begin_or_end_lasted_at_least_so_long) {
  request(-1, 100, 1'100, 1'200);
  request(1'000, 1'100, 4'900, -1);
  const Table table = request_table(made());
  ASSERT_EQ(table.rows.size(), 2u);
  EXPECT_EQ(table.rows[0][0], "1.00 to 1.10 s");
  EXPECT_EQ(table.rows[0][1], "at least 3.80 s");
  EXPECT_EQ(table.rows[1][0], "before 0.10 s");
  EXPECT_EQ(table.rows[1][1], "at least 1.00 s");
  EXPECT_EQ(table.rows[1].back(), "(no endpoint)");
}

TEST_F(RequestRows, the_choices_select_them_by_time_process_and_endpoint) {
  part(request(0, 100, 900, 1'000), time(frames("index:3"), TaskState::running), false, kMs);
  part(request(2'000, 2'100, 2'700, 2'800), time(frames("other:3"), TaskState::running), false, kMs);
  EXPECT_EQ(made().requests.size(), 2u);
  view::Choices early, one, elsewhere;
  early.to = 2'050 * kMs;
  ASSERT_EQ(made(early).requests.size(), 1u);
  EXPECT_EQ(made(early).requests[0].name, "index");
  one.endpoint_regex = "other";
  ASSERT_EQ(made(one).requests.size(), 1u);
  EXPECT_EQ(made(one).requests[0].name, "other");
}

TEST_F(RequestRows, that_ended_before_what_the_recording_kept_are_left_out) {
  request(-1, -900, -100, -2);
  rows.requests[0].latest_end = start() - 50 * kMs;
  EXPECT_TRUE(made().requests.empty());
}

TEST_F(RequestRows, a_third_of_the_limit_is_shown_and_nothing_without_any) {
  EXPECT_TRUE(request_table(made()).rows.empty());
  for (int i = 0; i < 20; ++i) request(1'000, 1'100, 2'000 + i, 2'100 + i);
  EXPECT_EQ(request_table(made()).rows.size(), 5u);
  EXPECT_EQ(made().requests.size(), 15u);
  EXPECT_EQ(request_table(made({}, 30)).rows.size(), 10u);
}

}  // namespace
}  // namespace phlox::report
