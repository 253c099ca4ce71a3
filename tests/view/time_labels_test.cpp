#include "phlox/view/time_labels.h"

#include <gtest/gtest.h>

#include <map>

#include "support/profile_of.h"

namespace phlox::view {

using namespace profile;

namespace {

using test::ProfileMaker;

constexpr Nanoseconds kStart = ProfileMaker::kStart;

// "main;work" -> weight, for every node that has weight of its own.
std::map<std::string, int64_t> selves(const Profile& profile, const Choices& choices) {
  std::map<std::string, int64_t> out;
  const auto tree = build_call_tree(profile, choices);
  EXPECT_TRUE(tree);
  for (size_t i = 1; tree && i < tree->nodes.size(); ++i) {
    if (tree->nodes[i].self == 0) continue;
    std::string path;
    for (auto at = static_cast<uint32_t>(i); at != 0; at = tree->nodes[at].parent)
      path = tree->labels[tree->nodes[at].label].name + (path.empty() ? "" : ";" + path);
    out[path] += tree->nodes[i].self;
  }
  return out;
}

using Selves = std::map<std::string, int64_t>;

// One thread: "a" for 10, "b" for 20, "a" for 30.
Profile recorded() {
  Profile profile;
  ProfileMaker maker(profile);
  const ThreadId thread = maker.thread("MainThread");
  maker.add(thread, "main;a", 10);
  maker.add(thread, "main;b", 20);
  maker.add(thread, "main;a", 30);
  return profile;
}

Selves shown(Profile profile, Choices choices) {
  const auto done = show_time_labels(profile, choices);
  EXPECT_TRUE(done) << done.error().message;
  return selves(profile, choices);
}

Choices only(const std::string& regex) {
  Choices choices;
  choices.label_regex = regex;
  return choices;
}

Choices by_label() {
  Choices choices;
  choices.by.label = true;
  return choices;
}

TEST(TimeLabels, nothing_changes_unless_asked_for) {
  Profile profile = recorded();
  profile.put_time_label({kStart, kStart + 5, "one"});
  EXPECT_EQ(shown(profile, {}), (Selves{{"main;a", 40}, {"main;b", 20}}));
}

TEST(TimeLabels, a_span_is_cut_where_a_label_ends) {
  Profile profile = recorded();
  profile.put_time_label({kStart + 5, kStart + 15, "test_one"});
  profile.put_time_label({kStart + 15, kStart + 40, "test_two"});
  EXPECT_EQ(shown(profile, only("one")), (Selves{{"main;a", 5}, {"main;b", 5}}));
  EXPECT_EQ(shown(profile, only("two")), (Selves{{"main;a", 10}, {"main;b", 15}}));
  EXPECT_EQ(shown(profile, only("test_")), (Selves{{"main;a", 15}, {"main;b", 20}}));
}

TEST(TimeLabels, an_expression_that_matches_none_is_an_error) {
  Profile profile = recorded();
  profile.put_time_label({kStart + 5, kStart + 15, "test_one"});
  const auto refused = show_time_labels(profile, only("three"));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::usage);
  EXPECT_EQ(refused.error().hint, "there are 1, such as: test_one");
}

TEST(TimeLabels, each_stack_begins_with_its_label) {
  Profile profile = recorded();
  profile.put_time_label({kStart + 5, kStart + 15, "one"});
  EXPECT_EQ(
      shown(profile, by_label()),
      (Selves{{"(no label);main;a", 35}, {"(no label);main;b", 15}, {"one;main;a", 5}, {"one;main;b", 5}}));
}

TEST(TimeLabels, labels_of_one_text_are_one) {
  Profile profile = recorded();
  profile.put_time_label({kStart, kStart + 5, "again"});
  profile.put_time_label({kStart + 40, kStart + 50, "again"});
  Choices choices = by_label();
  choices.label_regex = "again";
  EXPECT_EQ(shown(profile, choices), (Selves{{"again;main;a", 15}}));
}

TEST(TimeLabels, of_those_that_overlap_the_last_to_begin_counts) {
  Profile profile = recorded();
  profile.put_time_label({kStart, kStart + 60, "request"});
  profile.put_time_label({kStart + 10, kStart + 30, "query"});
  EXPECT_EQ(shown(profile, by_label()), (Selves{{"request;main;a", 40}, {"query;main;b", 20}}));
  // Among those that were asked for.
  EXPECT_EQ(shown(profile, only("request")), (Selves{{"main;a", 40}, {"main;b", 20}}));
}

TEST(TimeLabels, time_without_frames_keeps_its_mark) {
  Profile profile;
  ProfileMaker maker(profile);
  const ThreadId thread = maker.thread("MainThread");
  maker.add(thread, "", 10);
  profile.put_time_label({kStart, kStart + 10, "one"});
  EXPECT_EQ(shown(profile, by_label()), (Selves{{"one;(no Python frames)", 10}}));
}

TEST(TimeLabels, cpu_time_and_samples_are_shared_without_loss) {
  Profile profile;
  ProfileMaker maker(profile);
  const ThreadId thread = maker.thread("MainThread");
  Sample sample = maker.sample(thread, "main", 100);
  sample.cpu = 77;
  sample.samples = 10;
  maker.put(sample);
  for (int i = 0; i < 7; ++i)
    profile.put_time_label({kStart + i * 15, kStart + (i + 1) * 15, std::to_string(i)});
  ASSERT_TRUE(show_time_labels(profile, by_label()));
  ASSERT_EQ(profile.samples().size(), 7u);
  Nanoseconds wall = 0, cpu = 0;
  uint32_t samples = 0;
  for (const Sample& part : profile.samples()) {
    wall += part.wall;
    cpu += part.cpu;
    samples += part.samples;
  }
  EXPECT_EQ(wall, 100);
  EXPECT_EQ(cpu, 77);
  EXPECT_EQ(samples, 10u);
}

TEST(TimeLabels, a_label_without_time_is_none) {
  Profile profile = recorded();
  profile.put_time_label({kStart + 5, kStart + 5, "instant"});
  EXPECT_EQ(shown(profile, only("instant")), Selves{});
}

TEST(TimeLabels, a_recording_without_any_is_an_error) {
  Profile profile = recorded();
  EXPECT_EQ(show_time_labels(profile, by_label()).error().kind, ErrorKind::usage);
  profile.put_time_label({kStart, kStart + 5, "one"});
  EXPECT_EQ(show_time_labels(profile, only("(")).error().kind, ErrorKind::usage);
}

// Two workers, each in a test of its own at the same time, and a process that one of them started.
TEST(TimeLabels, a_label_of_a_process_is_of_what_that_one_started_too_and_of_no_other) {
  Profile profile;
  test::ProfileMaker maker(profile);
  const ProcessId one = maker.process(4801), two = maker.process(4802), child = maker.process(4803, two);
  maker.add(maker.thread("a", 4801, one), "first", 10);
  maker.add(maker.thread("b", 4802, two), "second", 10);
  maker.add(maker.thread("c", 4803, child), "third", 10);
  profile.put_time_label({kStart, kStart + 10, "one\t4801"});
  profile.put_time_label({kStart, kStart + 10, "two\t4802"});
  Profile again = profile;
  EXPECT_EQ(shown(profile, only("one")), (Selves{{"first", 10}}));
  EXPECT_EQ(shown(again, only("two")), (Selves{{"second", 10}, {"third", 10}}));
}

TEST(TimeLabels, lines_of_a_file) {
  const auto labels = parse_time_labels("1\t2\ttest one\n\n30\t40\ttwo\twith a tab\n5\t5\tno newline");
  ASSERT_TRUE(labels) << labels.error().message;
  ASSERT_EQ(labels->size(), 3u);
  EXPECT_EQ((*labels)[0].start, 1);
  EXPECT_EQ((*labels)[0].end, 2);
  EXPECT_EQ((*labels)[0].text, "test one");
  EXPECT_EQ((*labels)[1].text, "two\twith a tab");
  EXPECT_EQ((*labels)[2].text, "no newline");
  for (const char* bad : {"1\t2\n", "1\t2\t\n", "x\t2\ta\n", "1\t\ta\n", "2\t1\ta\n", "-1\t2\ta\n", "1 2 a\n",
                          "99999999999999999999\t2\ta\n"}) {
    const auto refused = parse_time_labels(std::string("1\t2\tfine\n") + bad);
    ASSERT_FALSE(refused) << bad;
    EXPECT_EQ(refused.error().message, "line 2 is no label");
  }
}

}  // namespace
}  // namespace phlox::view
