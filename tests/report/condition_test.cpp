// What `phlox diff --fail-if` reads: text of a user or of a file.
#include <gtest/gtest.h>

#include "phlox/report/diff.h"

namespace phlox::report {
namespace {

Condition parsed(const std::string& text) {
  const auto condition = parse_condition(text);
  EXPECT_TRUE(condition) << text << ": " << (condition ? "" : condition.error().message);
  return condition ? *condition : Condition{};
}
std::string refused(const std::string& text) {
  const auto condition = parse_condition(text);
  EXPECT_FALSE(condition) << text;
  return condition ? "" : condition.error().message;
}

TEST(Condition, each_unit_and_sign_has_its_kind) {
  const struct {
    const char* limit;
    LimitKind kind;
    double value;
  } cases[] = {
      {"+10%", LimitKind::relative, 0.1},
      {"-2.5 %", LimitKind::relative, -0.025},
      {"10%", LimitKind::share, 0.1},
      {"+2pp", LimitKind::points, 0.02},
      {"-0.5pp", LimitKind::points, -0.005},
      {"1.5s", LimitKind::weight, 1.5e9},
      {"20ms", LimitKind::weight, 2e7},
      {"+3us", LimitKind::weight_change, 3e3},
      {"-1 m", LimitKind::weight_change, -6e10},
      {"1e3ns", LimitKind::weight, 1e3},
  };
  for (const auto& c : cases) {
    const Condition condition = parsed(std::string("self(f) > ") + c.limit);
    EXPECT_EQ(condition.limit_kind, c.kind) << c.limit;
    EXPECT_DOUBLE_EQ(condition.limit, c.value) << c.limit;
  }
}

TEST(Condition, comparisons_are_strict_unless_they_say_equal) {
  EXPECT_TRUE(parsed("self(f) > 1%").greater);
  EXPECT_FALSE(parsed("self(f) > 1%").or_equal);
  EXPECT_TRUE(parsed("self(f)>=1%").or_equal);
  EXPECT_FALSE(parsed("self(f) <= 1%").greater);
  EXPECT_TRUE(parsed("self(f) <= 1%").or_equal);
}

TEST(Condition, a_name_may_hold_what_also_compares_and_closes) {
  EXPECT_EQ(parsed("self(<lambda>) > +1%").function, "<lambda>");
  EXPECT_EQ(parsed("total(f(int)) < 1%").function, "f(int)");
  EXPECT_EQ(parsed("total(std::vector<int>::push_back(int&&)) < 1%").function,
            "std::vector<int>::push_back(int&&)");
  EXPECT_EQ(parsed("  self (  Parser.parse  )   >   +2pp  ").function, "Parser.parse");
  EXPECT_EQ(parsed("self(f > g) > 1%").function, "f > g");
  EXPECT_EQ(parsed("total > +1s").function, "") << "the whole recording";
}

TEST(Condition, a_refusal_says_what_is_missing) {
  EXPECT_NE(refused("").find("'self' or 'total'"), std::string::npos);
  EXPECT_NE(refused("wall(f) > 1%").find("'self' or 'total'"), std::string::npos);
  EXPECT_NE(refused("self > 1%").find("self(NAME)"), std::string::npos);
  EXPECT_NE(refused("self(f > 1%").find("')' is missing"), std::string::npos);
  EXPECT_NE(refused("self( ) > 1%").find("no function"), std::string::npos);
  EXPECT_NE(refused("self(f) 1%").find("')' is missing"), std::string::npos) << "nothing compares";
  EXPECT_NE(refused("total = 1%").find("no '>' or '<'"), std::string::npos);
  EXPECT_NE(refused("self(f) >").find("no number"), std::string::npos);
  EXPECT_NE(refused("self(f) > fast").find("no number"), std::string::npos);
  EXPECT_NE(refused("self(f) > 10").find("no unit"), std::string::npos);
  EXPECT_NE(refused("self(f) > 10 parsecs").find("a unit that is not"), std::string::npos);
  EXPECT_NE(refused("self(f) > 2pp").find("+2pp or -2pp"), std::string::npos);
}

TEST(Condition, numbers_that_compare_with_nothing_are_refused) {
  for (const char* number :
       {"nan%", "inf%", "+inf s", "-infinity%", "1e999%", "+-1%", "++1%", "0x%", "-", "+"})
    EXPECT_NE(refused(std::string("self(f) > ") + number), "") << number;
}

TEST(Condition, bytes_that_are_no_text_do_no_harm) {
  EXPECT_EQ(parsed(std::string("self(\xff\x00\xc3) > 1%", 14)).function, std::string("\xff\x00\xc3", 3));
  refused(std::string(1 << 20, '('));
  refused("self(" + std::string(1 << 20, '<'));
  refused("total" + std::string(1 << 20, '>') + "1%");
  EXPECT_EQ(parsed("self(" + std::string(1 << 20, 'x') + ") > 1%").function.size(), size_t{1} << 20);
  EXPECT_NE(refused("self(f) > " + std::string(1 << 20, '9') + "%"), "") << "too large for a number";
}

// --- names

class Names : public testing::Test {
 protected:
  Names() {
    row_.name = "JSONDecoder.decode";
    row_.full = "JSONDecoder.decode(self, s)";
    row_.file = "/usr/lib/python3.12/json/decoder.py";
  }
  bool found(const std::string& pattern) {
    Diff diff;
    diff.functions = {row_};
    const auto result = check_condition(diff, parsed("self(" + pattern + ") > +1%"));
    EXPECT_TRUE(result) << pattern;
    return result && result->found;
  }
  DiffRow row_;
};

TEST_F(Names, with_as_much_of_the_module_as_the_pattern_has) {
  for (const char* pattern :
       {"JSONDecoder.decode", "decoder.JSONDecoder.decode", "json.decoder.JSONDecoder.decode",
        "JSONDecoder.decode(self, s)", "*.decode", "JSON*", "*", "json.*", "j*n.d*r.J*e"})
    EXPECT_TRUE(found(pattern)) << pattern;
  for (const char* pattern :
       {"decode", "JSONDecoder", "coder.JSONDecoder.decode", "xjson.decoder.JSONDecoder.decode", "JSON*x"})
    EXPECT_FALSE(found(pattern)) << pattern;
}

TEST_F(Names, a_package_is_named_without_its_init_file) {
  row_.file = "/site-packages/json/__init__.py";
  row_.name = row_.full = "loads";
  EXPECT_TRUE(found("json.loads"));
  EXPECT_FALSE(found("__init__.loads"));
}

// Backtracking to each star would take years here.
TEST_F(Names, many_stars_end_soon) {
  row_.name = row_.full = std::string(20'000, 'a');
  row_.file = std::string(2000, '/') + "a.py";
  std::string pattern;
  for (int i = 0; i < 200; ++i) pattern += "a*";
  EXPECT_TRUE(found(pattern));
  EXPECT_FALSE(found(pattern + "b"));
}

}  // namespace
}  // namespace phlox::report
