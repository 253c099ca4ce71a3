#include "phlox/report/diff.h"

#include <gtest/gtest.h>

#include <random>

#include "report/schema.h"
#include "support/profile_of.h"

namespace phlox::report {
namespace {

using profile::Profile;
using test::ProfileMaker;

// Looks at random at functions of the given weights.
Profile random_profile(const std::vector<std::pair<std::string, double>>& stacks, int looks, unsigned seed) {
  Profile profile;
  ProfileMaker maker(profile);
  const auto thread = maker.thread("MainThread");
  std::mt19937 random(seed);
  double sum = 0;
  for (const auto& [stack, weight] : stacks) sum += weight;
  std::uniform_real_distribution<> uniform(0, sum);
  for (int i = 0; i < looks; ++i) {
    double x = uniform(random);
    size_t at = 0;
    while (at + 1 < stacks.size() && x >= stacks[at].second) x -= stacks[at++].second;
    maker.add(thread, stacks[at].first, 5'000'000);
  }
  return profile;
}

Diff diff_of(const Profile& before, const Profile& after, const DiffOptions& options = {}) {
  auto diff = make_diff(before, after, options);
  EXPECT_TRUE(diff);
  return diff ? *diff : Diff{};
}

const DiffRow* find(const std::vector<DiffRow>& rows, const std::string& name) {
  for (const DiffRow& row : rows) {
    if (row.name == name) return &row;
  }
  return nullptr;
}

const std::vector<std::pair<std::string, double>> kBefore = {
    {"main;parse:10", 5},
    {"main;render:20", 3},
    {"main;old:30", 1},
    {"main;json/decoder.py/JSONDecoder.decode:7", 1}};
const std::vector<std::pair<std::string, double>> kAfter = {{"main;parse:10", 2},
                                                            {"main;render:20", 3},
                                                            {"main;fresh:30", 1},
                                                            {"main;json/decoder.py/JSONDecoder.decode:7", 4}};

class DiffOf : public testing::Test {
 protected:
  Profile before = random_profile(kBefore, 4000, 1);
  Profile after = random_profile(kAfter, 2000, 2);
  Diff diff = diff_of(before, after);
};

TEST_F(DiffOf, what_changed_is_kept_apart_from_what_did_not) {
  EXPECT_EQ(find(diff.functions, "parse")->self.verdict, Verdict::shrank);
  EXPECT_EQ(find(diff.functions, "render")->self.verdict, Verdict::noise);
  EXPECT_EQ(find(diff.functions, "old")->self.verdict, Verdict::vanished);
  EXPECT_EQ(find(diff.functions, "fresh")->self.verdict, Verdict::appeared);
  EXPECT_EQ(find(diff.functions, "JSONDecoder.decode")->self.verdict, Verdict::grew);
  EXPECT_EQ(find(diff.functions, "main")->total.verdict, Verdict::noise);
  EXPECT_EQ(diff.noise, 2u);
  const Change& change = find(diff.functions, "parse")->self;
  EXPECT_NEAR(change.difference, -0.3, 0.04);
  EXPECT_LT(change.low, -0.3);
  EXPECT_GT(change.high, -0.3);
  EXPECT_LT(change.high, -0.2);
  EXPECT_EQ(find(diff.lines, "parse")->line, 10);
  EXPECT_NE(find(diff.lines, "parse")->self.verdict, Verdict::noise);
}

TEST(DiffOfEqualPrograms, is_noise) {
  std::vector<std::pair<std::string, double>> many;
  for (int i = 0; i < 100; ++i) many.emplace_back("main;f" + std::to_string(i), 1 + i % 7);
  int alarms = 0;
  for (unsigned run = 0; run < 50; ++run) {
    const Diff diff =
        diff_of(random_profile(many, 3000, 100 + 2 * run), random_profile(many, 3000, 101 + 2 * run));
    alarms += diff.noise != diff.functions.size();
  }
  // One comparison in a hundred, self and total: two at most by a wide margin.
  EXPECT_LE(alarms, 3);
}

TEST(DiffOfMoved, finds_what_moved_to_another_place) {
  const Profile before = random_profile({{"/old/lib/app.py/main;/old/lib/app.py/work:20", 1}}, 500, 1);
  const Profile after = random_profile({{"/new/app.py/main;/new/app.py/work:20", 1}}, 500, 2);
  const Diff diff = diff_of(before, after);
  EXPECT_EQ(diff.functions.size(), 2u);
  EXPECT_EQ(find(diff.functions, "work")->self.verdict, Verdict::noise);
  EXPECT_EQ(find(diff.functions, "work")->file, "/new/app.py");
}

TEST_F(DiffOf, text_and_markdown) {
  const std::string text = diff_text(diff);
  EXPECT_NE(text.find("4 of 6 functions changed; what differs in the others is noise."), std::string::npos)
      << text;
  EXPECT_NE(text.find("vanished"), std::string::npos);
  EXPECT_EQ(text.find("render"), std::string::npos) << "noise is left out";
  EXPECT_EQ(text.find("Functions whose own share changed") > text.find("before python3 app.py"), true);
  EXPECT_NE(diff_markdown(diff).find("| points | 99 % |"), std::string::npos);
  const Diff same = diff_of(before, before);
  EXPECT_NE(diff_text(same).find("No difference beyond noise in 5 functions."), std::string::npos)
      << diff_text(same);
}

TEST_F(DiffOf, json_is_what_the_schema_says) {
  EXPECT_EQ(test::schema_violation(diff_json(diff), "diff.schema.json"), "") << diff_json(diff);
  EXPECT_EQ(test::schema_violation(diff_json(diff_of({}, {})), "diff.schema.json"), "");
  std::string wrong = diff_json(diff);
  wrong.replace(wrong.find("\"shrank\""), 8, "\"shronk\"");
  EXPECT_NE(test::schema_violation(wrong, "diff.schema.json"), "");
}

struct Case {
  const char* text;
  bool holds;
  bool is_noise;
};

TEST_F(DiffOf, conditions_hold_when_they_should) {
  const Case cases[] = {
      {"self(JSONDecoder.decode) > +10%", true, false},
      {"total(json.decoder.JSONDecoder.decode) > +10%", true, false},
      {"total(decoder.JSONDecoder.decode)>=+10 %", true, false},
      {"total(JSON*) > +10%", true, false},
      {"total(decode) > +10%", false, false},  // the qualified name, not its end
      {"total(JSONDecoder.decode) > +900%", false, false},
      {"total(parse) > +10%", false, false},
      {"total(parse) < -10%", true, false},
      {"self(parse) < -20pp", true, false},
      {"self(parse) < -50pp", false, false},
      {"self(fresh) > +10%", true, false},  // from nothing
      {"self(fresh) > 5%", true, false},
      {"self(fresh) > 30%", false, false},
      {"self(fresh) > 500ms", true, false},
      {"self(fresh) > 2s", false, false},
      {"self(JSONDecoder.decode) > +1s", true, false},
      {"total > 5s", true, false},
      {"total < -40%", true, false},
      {"total > 1m", false, false},
      {"total(nobody) > +10%", false, false},
  };
  for (const Case& c : cases) {
    const auto condition = parse_condition(c.text);
    ASSERT_TRUE(condition) << c.text << ": " << condition.error().message;
    const auto result = check_condition(diff, *condition);
    ASSERT_TRUE(result) << c.text;
    EXPECT_EQ(result->holds, c.holds) << c.text << ": " << result->text;
    EXPECT_EQ(result->is_noise, c.is_noise) << c.text << ": " << result->text;
  }
  // A change that chance makes does not fail a build, whichever way it goes.
  const double change = find(diff.functions, "render")->self.difference;
  const auto tiny =
      check_condition(diff, *parse_condition(change > 0 ? "self(render) > +0.01%" : "self(render) < -0.01%"));
  EXPECT_TRUE(tiny->is_noise) << tiny->text;
  EXPECT_FALSE(tiny->holds);
  const auto text = check_condition(diff, *parse_condition("total(nobody) > +10%"));
  EXPECT_FALSE(text->found);
  EXPECT_EQ(text->text, "no function nobody in either recording (limit of its total: > +10 %)");
}

TEST_F(DiffOf, a_function_that_nobody_knows_is_not_one_of_those_that_are_called_alike) {
  const auto alike = [&](const char* text) { return check_condition(diff, *parse_condition(text))->alike; };
  EXPECT_EQ(alike("total(rendr) > +10%"), std::vector<std::string>{"render"});
  EXPECT_EQ(alike("total(app.rendr) > +10%"), std::vector<std::string>{"render"});
  EXPECT_TRUE(alike("total(render) > +10%").empty()) << "it is found";
  EXPECT_TRUE(alike("total(something_else) > +10%").empty());
}

TEST_F(DiffOf, conditions_that_say_nothing_are_refused) {
  for (const char* wrong : {"", "f > 1", "total()", "total(f) 10%", "total(f) > ", "total(f) > 10",
                            "total(f) > 10 parsecs", "total(f) > 2pp", "self > 10s", "total(f > 10%",
                            "total() > 10%", "total(f) > +nan%", "total(f) > inf s"}) {
    const auto condition = parse_condition(wrong);
    ASSERT_FALSE(condition) << wrong;
    EXPECT_EQ(condition.error().kind, ErrorKind::usage);
  }
  EXPECT_FALSE(check_condition(diff, *parse_condition("total > 10%")));
  EXPECT_FALSE(check_condition(diff, *parse_condition("total > +2pp")));
  DiffOptions samples;
  samples.choices.weight = profile::Weight::samples;
  EXPECT_FALSE(check_condition(diff_of(before, after, samples), *parse_condition("self(f) > 10s")));
}

}  // namespace
}  // namespace phlox::report
