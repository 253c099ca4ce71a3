// Censuses of a program that never ran: what one after the other puts into the recording.
#include "phlox/sampler/session/task_census.h"

#include <gtest/gtest.h>

#include <optional>

#include "phlox/profile/profile.h"
#include "phlox/profile/task_time.h"
#include "phlox/sampler/session/system_host.h"
#include "support/fake_asyncio.h"
#include "support/layout_rows.h"

namespace phlox::sampler {
namespace {

constexpr Nanoseconds kMs = 1'000'000, kBegin = 1'000 * kSecond;

bool knows_tasks(const python::Layout& layout) {
  return layout.task.coro.present();
}

class TaskCensusOf : public testing::TestWithParam<const python::Layout*> {
 protected:
  TaskCensusOf() {
    census_.emplace(host_, profile::ProcessId(1), kBegin, interpreter_, program_.fake.memory(), clock_, seen_,
                    interner_, ids_, 2.0, 20);
  }
  void wait_for_a_future(int32_t line) {
    const RemoteAddress future = program_.future();
    program_.task("t", program_.coroutine("f", line, program_.iterator_of(future)), future);
    program_.linked = false;
    program_.import_modules();
  }
  void take(Nanoseconds since_begin) {
    census_->take(
        kBegin + since_begin, [](uint64_t) { return profile::ThreadId(7); }, [this] { ++pauses_; });
    census_->put();
  }

  python::FakeAsyncio program_{*GetParam()};
  python::Interpreter interpreter_ = program_.fake.interpreter();
  profile::Profile frames_;
  profile::Interner interner_{frames_};
  profile::TaskRows seen_;
  TaskRowIds ids_;
  process::ProcessClock clock_{0x7fffffff};  // of no process: whether it has run is never known
  SystemHost host_;
  std::optional<TaskCensus> census_;
  int pauses_ = 0;
};
INSTANTIATE_TEST_SUITE_P(TaskCensus, TaskCensusOf, testing::ValuesIn(test::layout_rows(knows_tasks)),
                         test::row_name);

TEST_P(TaskCensusOf, counts_from_the_middle_between_nothing_and_the_first_tasks) {
  program_.import_modules();
  take(100 * kMs);
  EXPECT_FALSE(census_->has_tasks());
  EXPECT_TRUE(seen_.censuses.empty()) << "a program without tasks has no rows";
  wait_for_a_future(12);
  take(200 * kMs);
  EXPECT_TRUE(census_->has_tasks());
  ASSERT_EQ(seen_.censuses.size(), 1u);
  EXPECT_EQ(seen_.censuses[0].times, 1u);
  EXPECT_EQ(seen_.censuses[0].span, 50 * kMs);
  EXPECT_EQ(seen_.censuses[0].tasks, 1u);
  EXPECT_EQ(seen_.censuses[0].problem, "");
  ASSERT_EQ(seen_.times.size(), 1u);
  EXPECT_EQ(seen_.times[0].time, 50 * kMs);
  EXPECT_EQ(seen_.loops[0].thread, profile::ThreadId(7));
  EXPECT_GT(pauses_, 0) << "the recorder's other work goes on";
}

TEST_P(TaskCensusOf, adds_up_what_each_one_finds) {
  wait_for_a_future(12);
  take(100 * kMs);
  wait_for_a_future(12);
  wait_for_a_future(14);
  take(160 * kMs);
  ASSERT_EQ(seen_.times.size(), 2u);
  EXPECT_EQ(seen_.times[0].time, (100 + 30 + 2 * 30) * kMs);
  EXPECT_EQ(seen_.times[0].at_end, 2u);
  EXPECT_EQ(seen_.times[1].time, 30 * kMs);
  EXPECT_EQ(seen_.censuses[0].times, 2u);
  EXPECT_EQ(seen_.censuses[0].span, 160 * kMs);
  EXPECT_EQ(seen_.censuses[0].tasks, 4u);
  ASSERT_EQ(seen_.groups.size(), 1u);
  EXPECT_EQ(seen_.groups[0].first, 1u);
  EXPECT_EQ(seen_.groups[0].last, 3u);
  EXPECT_EQ(seen_.groups[0].lasted, 60 * kMs);
}

TEST_P(TaskCensusOf, the_tasks_of_the_last_census_were_there_until_the_program_ended) {
  wait_for_a_future(12);
  take(100 * kMs);
  census_->end(kBegin + 180 * kMs);
  census_->put();
  ASSERT_EQ(seen_.times.size(), 1u);
  EXPECT_EQ(seen_.times[0].time, 180 * kMs);
  EXPECT_EQ(seen_.times[0].seen, 1u);
  EXPECT_EQ(seen_.times[0].at_end, 1u);
  EXPECT_EQ(seen_.censuses[0].times, 1u);
  EXPECT_EQ(seen_.censuses[0].span, 180 * kMs);
}

TEST_P(TaskCensusOf, no_time_is_added_at_the_end_of_a_program_without_tasks) {
  program_.import_modules();
  take(100 * kMs);
  census_->end(kBegin + 180 * kMs);
  census_->put();
  EXPECT_TRUE(seen_.censuses.empty());
  EXPECT_TRUE(seen_.times.empty());
}

TEST_P(TaskCensusOf, counts_tasks_that_ended_before_they_were_read) {
  wait_for_a_future(12);
  program_.task("freed", RemoteAddress(), RemoteAddress());
  program_.linked = false;
  program_.import_modules();
  take(100 * kMs);
  ASSERT_EQ(seen_.censuses.size(), 1u);
  EXPECT_EQ(seen_.censuses[0].tasks, 1u);
  EXPECT_EQ(seen_.censuses[0].ended, 1u);
}

TEST_P(TaskCensusOf, does_not_read_the_tasks_of_a_program_without_asyncio_again) {
  take(100 * kMs);
  const size_t once = program_.fake.memory().ranges();
  for (int i = 2; i < 10; ++i) take(i * 100 * kMs);
  EXPECT_LT(program_.fake.memory().ranges() - once, 8 * once) << "only the number of modules";
  EXPECT_FALSE(census_->has_tasks());
  EXPECT_TRUE(seen_.censuses.empty());
}

}  // namespace
}  // namespace phlox::sampler
