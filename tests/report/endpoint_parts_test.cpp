#include "phlox/report/endpoint_parts.h"

#include <gtest/gtest.h>

#include "phlox/report/report.h"
#include "phlox/view/prepared.h"
#include "support/tasks_of.h"

namespace phlox::report {
namespace {

using namespace profile;
using test::kFastApi;
using test::kLoop;
using test::kPool;

constexpr Nanoseconds kMs = 1'000'000;
const std::string kHandler = kLoop + "run_asgi;" + kFastApi + ";dashboard:12";

class EndpointParts : public testing::Test, public test::TasksOf {
 protected:
  void ran(ThreadId on, const std::string& frames, Nanoseconds wall) {
    Sample sample = maker.sample(on, frames, wall);
    sample.cpu = wall;
    sample.cpu_state = CpuState::running;
    maker.put(sample);
  }
  Report made(bool awaiters = true) const {
    ReportOptions options;
    options.choices.by.endpoint = true;
    options.choices.awaiters = awaiters;
    options.tasks = &rows;
    Profile shown = profile;
    view::prepare_tasks(shown, rows, options.choices);
    EXPECT_TRUE(view::prepare_view(shown, options.choices, view::Inherited::hidden));
    return *make_report(shown, options);
  }
  ThreadId worker = maker.thread("pool-1"), other = maker.thread("pool-2");
};

TEST_F(EndpointParts, are_the_handler_its_tasks_and_its_jobs) {
  waits("price", handler("dashboard:12"), 9);
  waits("leaf", stack({"price:8"}), 9);
  waits_for_job("resize", handler("dashboard:14"), 9);
  waits("janitor", {}, 9);
  ran(thread, kHandler, 10 * kMs);
  ran(thread, kHandler + ";render:3", 10 * kMs);
  ran(thread, kLoop + "price:40", 60 * kMs);
  ran(thread, kLoop + "leaf:40;sum:1", 5 * kMs);
  ran(worker, kPool + "resize:7", 20 * kMs);
  ran(other, kPool + "resize:9;encode:1", 15 * kMs);
  maker.put(maker.blocked(other, kPool + "resize:9", 7 * kMs, 0));
  ran(thread, kLoop + "janitor:1", 50 * kMs);
  for (const bool awaiters : {true, false}) {
    const Report report = made(awaiters);
    ASSERT_EQ(report.endpoints[0].name, "dashboard");
    const auto& parts = report.endpoints[0].parts;
    ASSERT_EQ(parts.size(), 4u) << awaiters;
    EXPECT_EQ(parts[0].part, view::EndpointPart::task);
    EXPECT_EQ(parts[0].name, "price");
    EXPECT_EQ(parts[0].cpu, 60 * kMs);
    EXPECT_EQ(parts[0].threads, 1u);
    EXPECT_EQ(parts[1].part, view::EndpointPart::job);
    EXPECT_EQ(parts[1].name, "resize");
    EXPECT_EQ(parts[1].cpu, 35 * kMs);
    EXPECT_EQ(parts[1].waiting, 7 * kMs);
    EXPECT_EQ(parts[1].threads, 2u);
    EXPECT_EQ(parts[1].processes, 1u);
    EXPECT_EQ(parts[2].part, view::EndpointPart::handler);
    EXPECT_EQ(parts[2].cpu, 20 * kMs);
    EXPECT_EQ(parts[3].name, "leaf");
    Nanoseconds cpu = 0;
    for (const EndpointPartRow& row : parts) cpu += row.cpu;
    EXPECT_EQ(cpu, report.endpoints[0].cpu);
    const Table table = endpoint_part_table(report);
    ASSERT_EQ(table.rows.size(), 4u);
    EXPECT_EQ(table.rows[1], (std::vector<std::string>{"35.0 ms", "-", "-", "7.00 ms", "2", "1", "job",
                                                       "resize", "/app/app.py:1", "dashboard"}));
    EXPECT_EQ(table.rows[2][7], "dashboard");
  }
}

TEST_F(EndpointParts, of_a_handler_alone_have_no_table) {
  ran(thread, kHandler, 10 * kMs);
  ran(thread, kLoop + "janitor:1", 50 * kMs);
  const Report report = made();
  ASSERT_EQ(report.endpoints[0].name, "dashboard");
  EXPECT_TRUE(report.endpoints[0].parts.empty());
  EXPECT_TRUE(endpoint_part_table(report).rows.empty());
}

}  // namespace
}  // namespace phlox::report
