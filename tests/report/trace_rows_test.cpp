#include "phlox/report/trace_rows.h"

#include <gtest/gtest.h>

#include "phlox/base/system_call_numbers.h"
#include "report/schema.h"
#include "support/profile_of.h"

namespace phlox::report {
namespace {

using namespace phlox::profile;
using namespace phlox::view;

constexpr Nanoseconds kMs = 1'000'000;
const std::string kFlask = "serve;/venv/site-packages/flask/app.py/Flask.dispatch_request;";

class TraceRows : public testing::Test {
 protected:
  // The thread works for the trace while it is in these frames.
  void work(ThreadId thread, uint8_t trace, uint8_t span, const std::string& frames, Nanoseconds wall) {
    put(maker_.sample(thread, frames, wall), trace, span);
  }
  void wait(ThreadId thread, uint8_t trace, uint8_t span, const std::string& frames, Nanoseconds wall) {
    put(maker_.blocked(thread, frames, wall, system_call("recvfrom").x86_64), trace, span);
  }
  void put(const Sample& sample, uint8_t trace, uint8_t span) {
    maker_.put(sample);
    if (trace == 0) return;
    TraceTime time{sample.thread, {}, sample.start, sample.start + sample.wall};
    time.ids.trace.fill(trace);
    time.ids.span.fill(span);
    profile_.emit(TraceTimeId(++times_), time);
  }
  Report report(const Choices& choices = {}) {
    ReportOptions options;
    options.choices = choices;
    auto made = make_report(profile_, options);
    EXPECT_TRUE(made);
    return *std::move(made);
  }

  Profile profile_;
  test::ProfileMaker maker_{profile_};
  ThreadId main_ = maker_.thread("MainThread");
  uint32_t times_ = 0;
};

TEST_F(TraceRows, the_longest_are_named_with_what_their_threads_did) {
  const ThreadId pool = maker_.thread("pool"), other = maker_.thread("other", 9, maker_.process(72));
  work(main_, 0, 0, "serve;idle", 100 * kMs);
  work(main_, 0x1a, 1, kFlask + "index;/venv/site-packages/jinja2/env.py/render", 40 * kMs);
  wait(main_, 0x1a, 2, kFlask + "index;query", 50 * kMs);
  work(main_, 0x2b, 3, kFlask + "about", 10 * kMs);
  work(pool, 0, 0, "run", 150 * kMs);
  work(pool, 0x1a, 4, "run;resize", 30 * kMs);
  work(other, 0, 0, "main", 195 * kMs);
  work(other, 0x2b, 5, "main;crop", 25 * kMs);
  const Report made = report();
  EXPECT_EQ(made.traces.count, 2u);
  EXPECT_EQ(made.traces.time, 155 * kMs);
  EXPECT_EQ(made.traces.of, 600 * kMs);
  ASSERT_EQ(made.traces.rows.size(), 2u);
  const TraceRow& first = made.traces.rows[0];
  EXPECT_EQ(first.trace[0], 0x1a);
  EXPECT_EQ(first.first, 100 * kMs);
  EXPECT_EQ(first.last, 190 * kMs);
  EXPECT_EQ(first.cpu, 70 * kMs);
  EXPECT_EQ(first.waiting, 50 * kMs);
  EXPECT_EQ(first.threads, 2u);
  EXPECT_EQ(first.processes, 1u);
  EXPECT_EQ(first.spans, 3u);
  // query: 50 ms; index: 40 ms, with its library.
  EXPECT_EQ(first.name, "query");
  EXPECT_EQ(first.endpoint, "index (app.py:1)");
  const TraceRow& second = made.traces.rows[1];
  EXPECT_EQ(second.processes, 2u);
  EXPECT_EQ(second.name, "crop");
  EXPECT_EQ(second.endpoint, "about (app.py:1)");
  EXPECT_EQ(test::schema_violation(report_json(made), "report.schema.json"), "");
  const std::string text = report_text(made);
  EXPECT_NE(text.find("2 traces. The threads worked for them in 25.8 % of their time"), std::string::npos)
      << text;
  EXPECT_NE(text.find("1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a"), std::string::npos) << text;
}

TEST_F(TraceRows, no_more_than_ten_are_listed) {
  for (uint8_t i = 1; i <= 30; ++i) work(main_, i, i, "main;work", i * kMs);
  const Report made = report();
  EXPECT_EQ(made.traces.count, 30u);
  ASSERT_EQ(made.traces.rows.size(), 10u);
  EXPECT_EQ(made.traces.rows[0].trace[0], 30);
  EXPECT_EQ(made.traces.rows[9].trace[0], 21);
  EXPECT_EQ(trace_table(made).left_out, 20u);
}

TEST_F(TraceRows, are_of_the_chosen_time_and_threads) {
  const ThreadId pool = maker_.thread("pool");
  work(main_, 1, 1, "main;work", 10 * kMs);
  work(main_, 2, 2, "main;work", 20 * kMs);
  work(pool, 3, 3, "run", 20 * kMs);
  Choices choices;
  choices.from = 15 * kMs;
  choices.thread_regex = "Main";
  const Report made = report(choices);
  EXPECT_EQ(made.traces.count, 1u);
  ASSERT_EQ(made.traces.rows.size(), 1u);
  EXPECT_EQ(made.traces.rows[0].trace[0], 2);
  EXPECT_EQ(made.traces.rows[0].first, 15 * kMs);
  EXPECT_EQ(made.traces.rows[0].last, 30 * kMs);
  EXPECT_EQ(made.traces.rows[0].cpu, 15 * kMs);
}

TEST_F(TraceRows, without_traces_there_is_no_table) {
  work(main_, 0, 0, "main;work", 10 * kMs);
  const Report made = report();
  EXPECT_EQ(made.traces.count, 0u);
  EXPECT_EQ(report_text(made).find("trace"), std::string::npos);
  EXPECT_EQ(test::schema_violation(report_json(made), "report.schema.json"), "");
}

}  // namespace
}  // namespace phlox::report
