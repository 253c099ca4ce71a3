#include "phlox/report/diff.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

#include "report/schema.h"
#include "support/profile_of.h"

namespace phlox::report {
namespace {

using profile::Profile;
using test::ProfileMaker;

// What is compared are seconds of runs.
void make_whole_run(Profile& profile) {
  profile.emit_meta("command_line", "phlox record -- python3 app.py");
  profile.emit_meta("start_monotonic_ns", std::to_string(ProfileMaker::kStart));
  profile::Process process = profile.processes().front();
  process.how_ended = "exit 0";
  profile.emit(profile::ProcessId(1), process);
}

// Looks at random at functions of the given weights.
Profile random_profile(const std::vector<std::pair<std::string, double>>& stacks, int samples,
                       unsigned seed) {
  Profile profile;
  ProfileMaker maker(profile);
  make_whole_run(profile);
  const auto thread = maker.thread("MainThread");
  std::mt19937 random(seed);
  double sum = 0;
  for (const auto& [stack, weight] : stacks) sum += weight;
  std::uniform_real_distribution<> uniform(0, sum);
  for (int i = 0; i < samples; ++i) {
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

TEST_F(DiffOf, seconds_are_judged_and_not_shares) {
  // 20 s became 10 s: render has the share that it had, in half the time.
  EXPECT_EQ(diff.per, Per::run);
  EXPECT_EQ(diff.before.elapsed, 20 * kSecond);
  EXPECT_EQ(diff.after.elapsed, 10 * kSecond);
  EXPECT_EQ(find(diff.functions, "parse")->self.verdict, Verdict::shrank);
  EXPECT_EQ(find(diff.functions, "render")->self.verdict, Verdict::shrank);
  EXPECT_EQ(find(diff.functions, "old")->self.verdict, Verdict::vanished);
  EXPECT_EQ(find(diff.functions, "fresh")->self.verdict, Verdict::appeared);
  EXPECT_EQ(find(diff.functions, "JSONDecoder.decode")->self.verdict, Verdict::grew);
  EXPECT_EQ(find(diff.functions, "main")->total.verdict, Verdict::shrank);
  EXPECT_EQ(diff.differ, 6u);
  const Change& change = find(diff.functions, "parse")->self;
  EXPECT_NEAR(change.difference, -8e9, 0.5e9);
  EXPECT_LT(change.low, -8e9);
  EXPECT_GT(change.high, -8.5e9);
  EXPECT_EQ(find(diff.lines, "parse")->line, 10);
  EXPECT_TRUE(is_certain(find(diff.lines, "parse")->self.verdict));
}

TEST(DiffText, one_long_name_widens_no_table) {
  const std::string mangled = "_ZN9hashbrown3raw21RawTable" + std::string(350, 'x') + "13reserve_rehash";
  const Profile before = random_profile({{"main;" + mangled + ":10", 5}, {"main;render:20", 3}}, 2000, 1);
  const Profile after = random_profile({{"main;" + mangled + ":10", 1}, {"main;render:20", 3}}, 2000, 2);
  const std::string text = diff_text(diff_of(before, after));
  EXPECT_NE(text.find("_ZN9hashbrown3raw"), std::string::npos) << text;
  EXPECT_NE(text.find("13reserve_rehash"), std::string::npos) << text;
  for (size_t at = text.find("_ZN9"); at != std::string::npos; at = text.find("_ZN9", at + 1)) {
    const size_t begin = text.rfind('\n', at) + 1;
    EXPECT_LT(text.find('\n', at) - begin, 240U) << text.substr(begin, 500);
  }
}

TEST_F(DiffOf, of_recordings_that_are_no_whole_runs_seconds_a_second_are_judged) {
  DiffOptions options;
  options.per = Per::second;
  const Diff rates = diff_of(before, after, options);
  EXPECT_EQ(rates.per, Per::second);
  EXPECT_EQ(find(rates.functions, "render")->self.verdict, Verdict::unclear);
  EXPECT_NEAR(find(rates.functions, "render")->self.before_amount.value, 0.3, 0.04);
  EXPECT_EQ(find(rates.functions, "parse")->self.verdict, Verdict::shrank);
  EXPECT_EQ(find(rates.functions, "main")->total.verdict, Verdict::same);
  Profile cut = random_profile(kBefore, 4000, 1);
  profile::Process process = cut.processes().front();
  process.how_ended = "recording ended";
  cut.emit(profile::ProcessId(1), process);
  EXPECT_EQ(diff_of(cut, after).per, Per::second);
  EXPECT_NE(diff_text(diff_of(cut, after)).find("in a second of recording"), std::string::npos);
}

// A program as a list of what it does and for how long, sampled every 5 ms or so, at random.
using Timeline = std::vector<std::pair<std::string, double>>;  // stack, ms

Profile sampled(const Timeline& timeline, unsigned seed) {
  Profile profile;
  ProfileMaker maker(profile);
  make_whole_run(profile);
  const auto thread = maker.thread("MainThread");
  std::mt19937 random(seed);
  std::uniform_real_distribution<> gap(2.5, 7.5);
  double end = 0, last = 0, next = gap(random);
  for (const auto& [stack, length] : timeline) {
    end += length;
    for (; next < end; next += gap(random)) {
      maker.add(thread, stack, static_cast<Nanoseconds>((next - last) * 1e6));
      last = next;
    }
  }
  return profile;
}

// Three kinds of programs in one: phases, a loop whose turns samples do not follow, one that they do.
Timeline program(double load, double parse, double wait, double fit) {
  Timeline timeline = {{"main;load", load}};
  for (int i = 0; i < 400; ++i) {
    timeline.emplace_back("main;loop;parse", parse * (1 + i % 3));
    timeline.emplace_back("main;loop;store", 0.8);
    timeline.emplace_back("main;loop;wait", wait);
  }
  for (int i = 0; i < 40; ++i) {
    timeline.emplace_back("main;fit;step", fit);
    timeline.emplace_back("main;fit;check", 12);
  }
  return timeline;
}

std::map<std::string, double> seconds_of(const Timeline& timeline) {
  std::map<std::string, double> seconds;
  for (const auto& [stack, length] : timeline) seconds[stack.substr(stack.rfind(';') + 1)] += length / 1e3;
  return seconds;
}

TEST(DiffOfEqualPrograms, raises_no_alarm_and_has_the_truth_in_its_intervals) {
  const Timeline timeline = program(700, 0.7, 1.1, 30);
  int alarms = 0, inside = 0, intervals = 0;
  for (unsigned run = 0; run < 200; ++run) {
    DiffOptions options;
    options.margin = 0;  // sampling error alone
    const Diff diff = diff_of(sampled(timeline, 1 + 2 * run), sampled(timeline, 2 + 2 * run), options);
    alarms += diff.differ > 0;
    for (const DiffRow& row : diff.functions) {
      inside += row.self.low <= 0 && row.self.high >= 0;
      ++intervals;
    }
  }
  EXPECT_LE(alarms, 2);
  EXPECT_GE(inside, intervals * 98 / 100);
}

TEST(DiffOfChangedPrograms, denies_no_change) {
  struct Pair {
    const char* changed;
    Timeline before, after;
  };
  const Timeline was = program(700, 0.7, 1.1, 30);
  const Pair pairs[] = {
      {"load", was, program(0, 0.7, 1.1, 30)},    {"load", was, program(350, 0.7, 1.1, 30)},
      {"parse", was, program(700, 0.2, 1.1, 30)}, {"parse", was, program(700, 1.4, 1.1, 30)},
      {"wait", was, program(700, 0.7, 0.1, 30)},  {"wait", was, program(700, 0.7, 3, 30)},
      {"step", was, program(700, 0.7, 1.1, 10)},  {"step", was, program(700, 0.7, 1.1, 45)},
      {"load", program(0, 0.7, 1.1, 30), was},    {"step", program(700, 0.7, 1.1, 0), was}};
  unsigned seed = 1000;
  for (const auto& [changed, before, after] : pairs) {
    for (int again = 0; again < 5; ++again) {
      const Diff diff = diff_of(sampled(before, seed), sampled(after, seed + 1));
      seed += 2;
      const double truth = (seconds_of(after)[changed] - seconds_of(before)[changed]) * 1e9;
      const Change& found = find(diff.functions, changed)->self;
      EXPECT_TRUE(is_certain(found.verdict)) << changed << " " << truth;
      EXPECT_EQ(found.difference > 0, truth > 0) << changed;
      EXPECT_NEAR(found.difference, truth, 1.3 * (found.high - found.low) / 2) << changed;
      // What did not change is not said to have, though its share did.
      for (const char* name : {"load", "parse", "store", "wait", "step", "check"}) {
        const DiffRow* row = find(diff.functions, name);
        if (name == std::string(changed) || row == nullptr) continue;
        EXPECT_FALSE(is_certain(row->self.verdict)) << name << " beside " << changed;
      }
    }
  }
}

TEST(DiffOfRuns, answers_the_other_question) {
  std::vector<Profile> runs;
  for (unsigned i = 0; i < 5; ++i) {
    runs.push_back(sampled(program(700 + 20 * i, 0.7, 1.1, 30), 1 + i));
    runs.push_back(sampled(program(705 + 18 * i, 0.3, 1.1, 30), 11 + i));
  }
  auto some = [&](size_t count) {
    std::pair<Profiles, Profiles> sides;
    for (size_t i = 0; i < 2 * count; ++i) (i % 2 == 0 ? sides.first : sides.second).push_back(&runs[i]);
    return sides;
  };
  const auto [before, after] = some(5);
  const Diff diff = *make_diff(before, after, {});
  EXPECT_EQ(diff.question, Question::runs);
  EXPECT_TRUE(diff.decides);
  EXPECT_EQ(find(diff.functions, "parse")->self.verdict, Verdict::shrank);
  EXPECT_EQ(find(diff.functions, "step")->self.verdict, Verdict::same);
  EXPECT_EQ(find(diff.functions, "parse")->self.before_runs.size(), 5u);
  EXPECT_NE(diff_text(diff).find("A test over all runs: "), std::string::npos);
  EXPECT_EQ(test::schema_violation(diff_json(diff), "diff.schema.json"), "");
  EXPECT_TRUE(check_condition(diff, *parse_condition("self(parse) < -10%"))->holds);
  EXPECT_FALSE(check_condition(diff, *parse_condition("self(parse) < -80%"))->holds);
  const auto [few, others] = some(3);
  const Diff undecided = *make_diff(few, others, {});
  EXPECT_FALSE(undecided.decides);
  EXPECT_EQ(undecided.differ, 0u);
  EXPECT_NE(diff_text(undecided).find("No verdict"), std::string::npos);
  EXPECT_NE(diff_text(undecided).find("Record at least 5 of each."), std::string::npos);
  EXPECT_NE(diff_text(undecided).find("parse"), std::string::npos) << "the numbers are shown all the same";
  const auto gate = check_condition(undecided, *parse_condition("self(parse) < -10%"));
  EXPECT_FALSE(gate->holds);
  EXPECT_NE(gate->text.find("too few runs"), std::string::npos) << gate->text;
}

// The sentence on waiting is of the first run, and says so; the number is the average.
TEST(DiffOfRuns, time_that_is_left_out_is_not_passed_off_as_that_of_all_runs) {
  const std::string kLib = "/usr/lib/python3.12/";
  std::vector<Profile> runs(4);
  for (size_t i = 0; i < runs.size(); ++i) {
    ProfileMaker maker(runs[i]);
    make_whole_run(runs[i]);
    runs[i].emit_meta("machine", "x86_64");
    maker.add(maker.thread("MainThread", 4711), "main;parse:10", 5 * kSecond);
    const auto worker = maker.thread("worker", 5000);
    maker.put(maker.blocked(worker,
                            kLib + "threading.py/_bootstrap;" + kLib + "threading.py/_bootstrap_inner;" +
                                kLib + "threading.py/run;" + kLib + "concurrent/futures/thread.py/_worker",
                            Nanoseconds(i + 1) * kSecond, 202));
  }
  DiffOptions options;
  options.choices.show = view::Show::work;
  const Diff diff = *make_diff({&runs[0], &runs[2]}, {&runs[1], &runs[3]}, options);
  const std::string text = diff_text(diff);
  EXPECT_NE(text.find("left out (before, the first of 2 runs): 1.00 s of waiting"), std::string::npos)
      << text;
  EXPECT_EQ(diff.before.left_out_wall, 2 * kSecond);
  EXPECT_EQ(diff.after.left_out_wall, 3 * kSecond);
  const Diff single = diff_of(runs[0], runs[1], options);
  EXPECT_NE(diff_text(single).find("left out (before): 1.00 s of waiting"), std::string::npos);
}

TEST(DiffOfMoved, finds_what_moved_to_another_place) {
  const Profile before = random_profile({{"/old/lib/app.py/main;/old/lib/app.py/work:20", 1}}, 5000, 1);
  const Profile after = random_profile({{"/new/app.py/main;/new/app.py/work:20", 1}}, 5000, 2);
  const Diff diff = diff_of(before, after);
  EXPECT_EQ(diff.functions.size(), 2u);
  EXPECT_EQ(find(diff.functions, "work")->self.verdict, Verdict::same);
  EXPECT_EQ(find(diff.functions, "work")->file, "/new/app.py");
}

TEST_F(DiffOf, text_and_markdown) {
  const std::string text = diff_text(diff);
  EXPECT_TRUE(text.starts_with("20.0 s became 10.0 s (-10.0 s, -50 %)")) << text;
  EXPECT_NE(text.find("These two recordings differ in 6 of 6 functions."), std::string::npos) << text;
  EXPECT_NE(text.find("cannot show whether other runs differ too"), std::string::npos) << text;
  EXPECT_NE(text.find("vanished"), std::string::npos);
  EXPECT_EQ(text.find("Functions whose own time differs") > text.find("before python3 app.py"), true);
  EXPECT_NE(diff_markdown(diff).find("| change | 99 % |"), std::string::npos);
  EXPECT_NE(diff_text(diff_of(before, before)).find("Recordings"), 0u);
  // Four thousand samples bound what is not seen, and the bound is said.
  const std::string same = diff_text(diff_of(before, random_profile(kBefore, 4000, 9)));
  EXPECT_EQ(same.find("No difference"), std::string::npos) << same;
  EXPECT_NE(same.find("a difference below"), std::string::npos) << same;
  const std::string few =
      diff_text(diff_of(random_profile(kBefore, 100, 1), random_profile(kBefore, 100, 2)));
  EXPECT_NE(few.find("Inconclusive: no function is seen to differ"), std::string::npos) << few;
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
  bool is_unclear;
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
      {"total(render) > +10%", false, false},  // its share is what it was
      {"total(parse) < -10%", true, false},
      {"self(parse) < -20pp", true, false},
      {"self(parse) < -50pp", false, false},
      {"self(parse) < -30pp", false, true},  // the interval has the limit in it,
      {"self(fresh) > +10%", true, false},   // from nothing
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
    EXPECT_EQ(result->is_unclear, c.is_unclear) << c.text << ": " << result->text;
  }
  const auto gone = check_condition(diff, *parse_condition("self(old) > +10%"));
  EXPECT_NE(gone->text.find("changed by -100.0 % (99 %: -100.0 to "), std::string::npos) << gone->text;
  const auto text = check_condition(diff, *parse_condition("total(nobody) > +10%"));
  EXPECT_FALSE(text->found);
  EXPECT_EQ(text->text, "no function nobody in either recording (limit of its total: > +10 %)");
}

TEST_F(DiffOf, an_unknown_function_is_not_one_of_those_with_the_same_name) {
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
  samples.choices.weight = view::Weight::samples;
  EXPECT_FALSE(check_condition(diff_of(before, after, samples), *parse_condition("self(f) > 10s")));
}

}  // namespace
}  // namespace phlox::report
