#include "phlox/view/empty_view.h"

#include <gtest/gtest.h>

#include "support/profile_of.h"

namespace phlox::view {

using namespace profile;

namespace {

class EmptyView : public testing::Test {
 protected:
  EmptyView() {
    test::ProfileMaker maker(profile);
    maker.add(maker.thread("worker"), "main;work", 2 * kSecond);
  }
  Profile profile;
  Choices choices;
};

TEST_F(EmptyView, says_nothing_where_there_is_something) {
  EXPECT_EQ(why_empty(profile, choices), std::nullopt);
  choices.from = kSecond;
  EXPECT_EQ(why_empty(profile, choices), std::nullopt);
}

TEST_F(EmptyView, names_the_threads_that_there_are) {
  choices.thread_regex = "^none$";
  EXPECT_NE(why_empty(profile, choices)->find("its threads: Thread worker"), std::string::npos);
}

TEST_F(EmptyView, reports_a_time_beyond_the_end) {
  choices.from = 50 * kSecond;
  EXPECT_EQ(*why_empty(profile, choices), "--time begins at 50 s, but the recording ends at 2 s");
}

TEST_F(EmptyView, reports_samples_that_weigh_nothing) {
  Profile waiting;
  test::ProfileMaker maker(waiting);
  Sample sample = maker.sample(maker.thread("worker"), "main;wait", kSecond);
  sample.cpu = 0;
  maker.put(sample);
  choices.weight = Weight::cpu;
  const auto why = why_empty(waiting, choices);
  ASSERT_TRUE(why);
  EXPECT_NE(why->find("no CPU time"), std::string::npos);
}

TEST_F(EmptyView, of_a_recording_without_samples) {
  EXPECT_NE(why_empty(Profile(), choices)->find("the recording is empty"), std::string::npos);
}

}  // namespace
}  // namespace phlox::view
