#include "phlox/exporters/callgrind.h"

#include <gtest/gtest.h>

#include <sstream>

#include "support/profile_of.h"

#include "phlox/view/shown_event.h"

namespace phlox::exporters {
namespace {

std::string written(const profile::Profile& profile) {
  view::Choices choices;
  choices.by.line = choices.by.place = true;
  std::ostringstream out;
  write_callgrind(profile, *view::build_call_tree(profile, choices),
                  {view::Weight::wall, "python3 app.py", ""}, out);
  // The header's first three lines hold the version.
  const std::string text = out.str();
  return text.substr(text.find("cmd:"));
}

TEST(callgrind, costs_are_by_line_and_calls_have_what_the_callee_cost) {
  profile::Profile profile;
  test::ProfileMaker make(profile);
  const auto main = make.thread("MainThread");
  make.add(main, "main:3;load:7", 20);
  make.add(main, "main:3;load:8", 5);
  make.add(main, "main:4;load:7", 3);
  make.add(main, "main:4", 2);
  EXPECT_EQ(written(profile),
            "cmd: python3 app.py\npositions: line\nevents: Wall_ns\nsummary: 30\n"
            "\nob=(1) Python\nfl=(1) /app/app.py\nfn=(1) main\n"
            "cob=(1)\ncfi=(1)\ncfn=(2) load\ncalls=1 1\n3 25\n"
            "4 2\ncob=(1)\ncfi=(1)\ncfn=(2)\ncalls=1 1\n4 3\n"
            "\nob=(1)\nfl=(1)\nfn=(2)\n7 23\n8 5\n"
            "\ntotals: 30\n");
}

TEST(callgrind, counts_of_other_events_are_costs_of_the_same_lines) {
  profile::Profile profile;
  test::ProfileMaker make(profile);
  profile::put_sampled_event(profile, 1, {"cpu-clock", profile::Unit::nanoseconds});
  profile::put_sampled_event(profile, 2, {"cache-misses:u", profile::Unit::count});
  const auto main = make.thread("MainThread");
  make.add(main, "main:3;load:7", 20);
  make.add(main, "main:4", 2);
  profile::Sample missed = make.sample(main, "main:3;load:7", 0);
  missed.event = 2;
  missed.value = 500;
  make.put(missed);
  ASSERT_TRUE(view::show_event(profile, ""));
  view::Choices choices;
  choices.by.line = choices.by.place = true;
  std::ostringstream out;
  write_callgrind(profile, *view::build_call_tree(profile, choices),
                  {view::Weight::wall, "app", "", "cpu-clock", *other_events(profile, choices)}, out);
  const std::string text = out.str();
  EXPECT_EQ(text.substr(text.find("events:")),
            "events: Wall_ns cache-misses_u\nsummary: 22 500\n"
            "\nob=(1) Python\nfl=(1) /app/app.py\nfn=(1) main\n"
            "cob=(1)\ncfi=(1)\ncfn=(2) load\ncalls=1 1\n3 20 500\n"
            "4 2\n"
            "\nob=(1)\nfl=(1)\nfn=(2)\n7 20 500\n"
            "\ntotals: 22 500\n");
}

TEST(callgrind, what_a_recursive_call_costs_is_in_the_outer_call) {
  profile::Profile profile;
  test::ProfileMaker make(profile);
  make.add(make.thread("MainThread"), "main:1;fib:5;fib:5;fib:5;leaf:9", 10);
  const std::string text = written(profile);
  EXPECT_NE(text.find("cfn=(2) fib\ncalls=1 1\n1 10\n"), std::string::npos) << text;
  EXPECT_NE(text.find("cfn=(2)\ncalls=1 1\n5 0\n"), std::string::npos) << text;
  EXPECT_NE(text.find("cfn=(3) leaf\ncalls=1 1\n5 10\n"), std::string::npos) << text;
}

TEST(callgrind, functions_of_one_name_in_one_file_are_distinguished) {
  profile::Profile profile;
  test::ProfileMaker make(profile);
  const auto main = make.thread("MainThread");
  make.add(main, "main;__init__:12", 2);
  profile::Frame other = profile.frames().back();
  other.first_line = 40;
  other.line = 41;
  profile.emit(profile::FrameId(static_cast<uint32_t>(profile.frames().size() + 1)), other);
  const auto parent = profile.stacks().front();
  profile.emit(profile::StackId(3), {profile::StackId(1), profile::FrameId(3)});
  ASSERT_FALSE(parent.parent);
  profile::Sample sample = make.sample(main, "main", 3);
  sample.stack = profile::StackId(3);
  make.put(sample);
  const std::string text = written(profile);
  EXPECT_NE(text.find("__init__:1\n"), std::string::npos) << text;
  EXPECT_NE(text.find("__init__:40\n"), std::string::npos) << text;
}

}  // namespace
}  // namespace phlox::exporters
