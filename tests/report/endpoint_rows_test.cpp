#include "phlox/report/endpoint_rows.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "phlox/base/system_call_numbers.h"
#include "report/schema.h"
#include "support/profile_of.h"

namespace phlox::report {
namespace {

using namespace phlox::profile;
using namespace phlox::view;

constexpr Nanoseconds kMs = 1'000'000;
const std::string kFlask = "serve;/venv/site-packages/flask/app.py/Flask.dispatch_request;";
const std::string kFastApi = "serve;/venv/site-packages/fastapi/routing.py/run_endpoint_function;";

class EndpointRows : public testing::Test {
 protected:
  EndpointRows() : thread_(maker_.thread("MainThread")) {}
  void run(const std::string& frames, Nanoseconds wall) { maker_.add(thread_, frames, wall); }
  void block(const std::string& frames, Nanoseconds wall, GilState gil = GilState::none) {
    maker_.put(maker_.blocked(thread_, frames, wall, system_call("recvfrom").x86_64, gil));
  }
  void lack_cpu(const std::string& frames, Nanoseconds wall) {
    Sample sample = maker_.sample(thread_, frames, wall);
    sample.cpu = 0;
    sample.cpu_state = CpuState::runnable;
    maker_.put(sample);
  }
  // One task at a time for all of ten seconds is 10 s.
  void await(const std::string& frames, const std::string& kind, Nanoseconds time,
             TaskState state = TaskState::waiting, std::optional<TaskChanges> changes = {}) {
    TaskStackId parent;
    for (size_t at = 0; at < frames.size();) {
      const size_t end = std::min(frames.find(';', at), frames.size());
      const TaskStackId id(static_cast<uint32_t>(tasks_.stacks.size() + 1));
      tasks_.put_task_stack(id, {parent, maker_.frame(frames.substr(at, end - at))});
      parent = id;
      at = end + 1;
    }
    if (tasks_.loops.empty()) {
      tasks_.put_event_loop(EventLoopId(1), {ProcessId(1), thread_, "asyncio"});
      TaskCensus census;
      census.process = ProcessId(1);
      census.times = 100;
      census.span = 10 * kSecond;
      tasks_.put_task_census(TaskCensusId(1), census);
    }
    TaskTime row{EventLoopId(1), parent, state, kind, "", time, 1, time};
    row.changes = changes;
    tasks_.put_task_time(TaskTimeId(static_cast<uint32_t>(tasks_.times.size() + 1)), row);
  }
  Report report(Choices choices = {}, size_t limit = 15) {
    ReportOptions options;
    options.choices = choices;
    options.limit = limit;
    options.tasks = &tasks_;
    auto made = make_report(profile_, options);
    EXPECT_TRUE(made);
    return *std::move(made);
  }

  Profile profile_;
  test::ProfileMaker maker_{profile_};
  ThreadId thread_;
  TaskRows tasks_;
};

TEST_F(EndpointRows, have_the_time_of_threads_by_what_they_did_and_that_of_tasks) {
  run(kFlask + "index", 100 * kMs);
  block(kFlask + "index;query", 300 * kMs);
  block(kFlask + "index", 50 * kMs, GilState::waits);
  lack_cpu(kFlask + "index", 20 * kMs);
  run(kFlask + "about", 60 * kMs);
  run("serve", 40 * kMs);
  await(kFastApi + "live", "queue_item", 30 * kSecond);
  await(kFastApi + "live;sleep", "sleep", 5 * kSecond);
  await("lifespan", "queue_item", 10 * kSecond);
  const Report made = report();
  ASSERT_EQ(made.endpoints.size(), 4u);
  EXPECT_EQ(made.endpoints_seen, 3u);
  const EndpointRow& live = made.endpoints[0];
  EXPECT_EQ(live.name, "live");
  EXPECT_EQ(live.framework, "FastAPI");
  EXPECT_EQ(live.await, 35 * kSecond);
  EXPECT_DOUBLE_EQ(live.tasks, 3.5);
  EXPECT_EQ(live.awaits_for, "an item of a queue");
  EXPECT_EQ(live.awaits_for_time, 30 * kSecond);
  EXPECT_EQ(live.cpu, 0);
  const EndpointRow& index = made.endpoints[1];
  EXPECT_EQ(index.name, "index");
  EXPECT_EQ(index.cpu, 100 * kMs);
  EXPECT_DOUBLE_EQ(index.cpu_share, 0.5);
  EXPECT_EQ(index.gil, 50 * kMs);
  EXPECT_EQ(index.no_cpu, 20 * kMs);
  EXPECT_EQ(index.waiting, 300 * kMs);
  EXPECT_EQ(index.waits_for, "a socket (recvfrom)");
  EXPECT_EQ(index.total.weight, 470 * kMs);
  EXPECT_NEAR(index.total.share, 470.0 / 570, 1e-9);
  EXPECT_LT(index.total.low, index.total.share);
  EXPECT_EQ(made.endpoints[2].name, "about");
  EXPECT_EQ(made.endpoints[3].kind, EndpointKind::none);
  EXPECT_EQ(made.endpoints[3].cpu, 40 * kMs);
  EXPECT_EQ(made.endpoints[3].await, 10 * kSecond);
}

TEST_F(EndpointRows, have_the_error_of_await_time_and_what_was_ready_beside_it) {
  run(kFastApi + "live", 100 * kMs);
  TaskChanges one, other;
  one.bins[3] = float(300 * kMs);
  one.bins[4] = float(-400 * kMs);
  // Where a task goes from one line of the handler to the other, the sum of both does not change.
  other.bins[3] = float(-300 * kMs);
  await(kFastApi + "live:1", "sleep", 5 * kSecond, TaskState::waiting, one);
  await(kFastApi + "live:2", "sleep", 3 * kSecond, TaskState::waiting, other);
  await(kFastApi + "live:2", "", 700 * kMs, TaskState::ready, TaskChanges());
  await(kFastApi + "live:2", "", 100 * kMs, TaskState::running, TaskChanges());
  const Report made = report();
  const EndpointRow& live = made.endpoints[0];
  EXPECT_EQ(live.await, 8 * kSecond);
  EXPECT_EQ(live.ready, 700 * kMs);
  const double half = 2.5758 * std::sqrt(0.75) * 0.4;
  EXPECT_NEAR(double(live.await_low) * 1e-9, 8 - half, 0.001);
  EXPECT_NEAR(double(live.await_high) * 1e-9, 8 + half, 0.001);
}

TEST_F(EndpointRows, of_older_recordings_have_await_time_without_its_error) {
  run(kFastApi + "live", 100 * kMs);
  await(kFastApi + "live", "sleep", 5 * kSecond);
  const Report made = report();
  EXPECT_EQ(made.endpoints[0].await, 5 * kSecond);
  EXPECT_EQ(made.endpoints[0].await_high, 0);
}

TEST_F(EndpointRows, cpu_time_of_which_the_place_is_not_known_makes_shares_the_least) {
  for (int i = 0; i < 20; ++i) run(kFastApi + "live:" + std::to_string(i), 5 * kMs);
  run("(ran between two samples)", 300 * kMs);
  const Report made = report();
  EXPECT_EQ(made.endpoints.back().kind, EndpointKind::not_read);
  EXPECT_EQ(made.endpoints.back().cpu, 300 * kMs);
  const auto finding = std::find_if(made.findings.begin(), made.findings.end(),
                                    [](const Finding& one) { return one.kind == "endpoints"; });
  ASSERT_NE(finding, made.findings.end());
  EXPECT_EQ(finding->text.substr(0, finding->text.find(',')),
            "at least 25.0 % of the CPU time is spent in requests to 1 endpoint of FastAPI (of 75.0 % it is "
            "not known)");
}

TEST_F(EndpointRows, cpu_time_that_is_the_weight_decides_the_order) {
  run(kFlask + "busy", 100 * kMs);
  run(kFlask + "waits", 10 * kMs);
  block(kFlask + "waits", 900 * kMs);
  EXPECT_EQ(report().endpoints[0].name, "waits");
  Choices choices;
  choices.weight = Weight::cpu;
  const Report made = report(choices);
  EXPECT_EQ(made.endpoints[0].name, "busy");
  EXPECT_NEAR(made.endpoints[0].total.share, 100.0 / 110, 1e-9);
}

TEST_F(EndpointRows, are_as_many_as_asked_for_and_those_of_no_endpoint_stay) {
  for (const std::string name : {"a", "b", "c"}) run(kFlask + name, 10 * kMs);
  run("serve", kMs);
  const Report made = report({}, 2);
  ASSERT_EQ(made.endpoints.size(), 3u);
  EXPECT_EQ(made.endpoints_seen, 3u);
  EXPECT_EQ(made.endpoints.back().kind, EndpointKind::none);
  EXPECT_EQ(endpoint_table(made).left_out, 1u);
}

TEST_F(EndpointRows, of_chosen_endpoints_have_no_other_tasks) {
  run(kFastApi + "one", 10 * kMs);
  run(kFastApi + "two", 10 * kMs);
  await(kFastApi + "one", "sleep", kSecond);
  await(kFastApi + "two", "sleep", kSecond);
  Choices choices;
  choices.endpoint_regex = "^one ";
  const Report made = report(choices);
  ASSERT_EQ(made.endpoints.size(), 1u);
  EXPECT_EQ(made.endpoints[0].name, "one");
  EXPECT_EQ(made.endpoints[0].await, kSecond);
}

TEST_F(EndpointRows, the_table_is_there_if_asked_for_and_the_finding_always) {
  for (int i = 0; i < 20; ++i) run(kFlask + "index", 10 * kMs);
  run("serve", 50 * kMs);
  Choices choices;
  EXPECT_EQ(report_text(report(choices)).find("Endpoints\n"), std::string::npos);
  EXPECT_NE(report_text(report(choices))
                .find("80.0 % of the CPU time is spent in requests to 1 endpoint of Flask, 80.0 % in index "
                      "(/app/app.py:1)"
                      " (--by endpoint lists them all)"),
            std::string::npos)
      << report_text(report(choices));
  choices.by.endpoint = true;
  const std::string text = report_text(report(choices));
  EXPECT_NE(text.find("Endpoints\n"), std::string::npos) << text;
  EXPECT_EQ(text.find("tasks at a time"), std::string::npos) << "no task awaited anything";
  EXPECT_EQ(text.find("likely"), std::string::npos);
  run(kFlask + "login.<locals>.wrapper:3;page", 10 * kMs);
  EXPECT_NE(report_text(report(choices)).find("Flask, likely"), std::string::npos);
}

TEST_F(EndpointRows, a_program_without_a_framework_has_none_and_is_told_so) {
  for (int i = 0; i < 20; ++i) run("main;work", 10 * kMs);
  Choices choices;
  choices.by.endpoint = true;
  const Report made = report(choices);
  EXPECT_TRUE(made.endpoints.empty());
  EXPECT_NE(report_text(made).find("None. No stack of the recording"), std::string::npos);
  for (const Finding& finding : made.findings) EXPECT_NE(finding.kind, "endpoints");
}

TEST_F(EndpointRows, are_in_the_json_as_the_schema_has_them) {
  run(kFlask + "index", 10 * kMs);
  run("(… 12 frames left out);query", 10 * kMs);
  await(kFastApi + "live", "sleep", kSecond);
  const std::string json = report_json(report());
  EXPECT_EQ(test::schema_violation(json, "report.schema.json"), "") << json;
  EXPECT_NE(json.find("\"kind\": \"not_read\""), std::string::npos) << json;
  EXPECT_NE(json.find("\"tasks_at_a_time\": 0.1"), std::string::npos) << json;
}

TEST_F(EndpointRows, of_formats_without_times_count_samples) {
  Sample sample = maker_.sample(thread_, kFlask + "index", 0);
  sample.samples = 30;
  sample.cpu_state = CpuState::unknown;
  maker_.put(sample);
  Choices choices;
  choices.weight = Weight::samples;
  const Report made = report(choices);
  ASSERT_EQ(made.endpoints.size(), 1u);
  EXPECT_EQ(made.endpoints[0].total.weight, 30);
  EXPECT_DOUBLE_EQ(made.endpoints[0].total.share, 1);
}

TEST(EndpointFinding, names_the_frameworks_of_all_endpoints) {
  Report report;
  report.elapsed = kSecond;
  for (const auto& [framework, cpu] :
       {std::pair("Flask", kSecond / 10), {"FastAPI", kSecond / 5}, {"Celery", kSecond / 2}}) {
    EndpointRow row;
    row.kind = EndpointKind::endpoint;
    row.name = row.full = "handle";
    row.framework = framework;
    row.cpu = cpu;
    row.cpu_share = double(cpu) / double(kSecond);
    report.endpoints.push_back(row);
  }
  const auto finding = endpoint_finding(report);
  ASSERT_TRUE(finding);
  EXPECT_NE(finding->text.find("requests to 3 endpoints of Celery, FastAPI and Flask, 50.0 % in"),
            std::string::npos)
      << finding->text;
}

}  // namespace
}  // namespace phlox::report
