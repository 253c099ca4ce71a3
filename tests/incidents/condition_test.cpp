#include "phlox/incidents/condition.h"

#include <gtest/gtest.h>

#include <csignal>

namespace phlox::incidents {
namespace {

TEST(Condition, each_kind_is_read) {
  EXPECT_EQ(parse_condition("stall=200ms")->length, 200'000'000);
  EXPECT_EQ(parse_condition("gil=1s")->kind, Kind::gil);
  EXPECT_EQ(parse_condition("cpu=250%/30s")->share, 2.5);
  EXPECT_EQ(parse_condition("cpu=250%/30s")->over, 30 * kSecond);
  EXPECT_EQ(parse_condition("cpu-wait=50%")->over, 10 * kSecond);
  EXPECT_EQ(parse_condition("memory=90%")->share, 0.9);
  EXPECT_EQ(parse_condition("signal=USR2")->signal, SIGUSR2);
  EXPECT_EQ(parse_condition("signal=SIGUSR1")->signal, SIGUSR1);
  EXPECT_EQ(parse_condition("http=127.0.0.1:9465")->address, "127.0.0.1:9465");
  EXPECT_EQ(parse_condition("death")->kind, Kind::death);
}

TEST(Condition, a_log_file_ends_at_the_first_colon) {
  const auto log = parse_condition("log=/var/log/app.log:^E: x=(1|2)$");
  ASSERT_TRUE(log);
  EXPECT_EQ(log->file, "/var/log/app.log");
  EXPECT_EQ(log->regex, "^E: x=(1|2)$");
}

TEST(Condition, what_is_wrong_is_refused_with_an_example) {
  for (const std::string text :
       {"",          "=",        "stal=1s",   "stall",        "stall=",     "stall=-1s",   "stall=nan",
        "stall=1ms", "stall=1h", "stall=1e9", "gil=x",        "cpu=90",     "cpu=%",       "cpu=0%",
        "cpu=-5%",   "cpu=inf%", "cpu=90%/",  "cpu=90%/0.1s", "cpu=90%/1h", "cpu=1e300%",  "memory=101%",
        "memory=",   "log=",     "log=/a",    "log=:x",       "log=/a:",    "signal=TERM", "signal=",
        "signal=9",  "http=",    "death=1",   "DEATH",        "death ",     " death",      "cpu_wait=5%"}) {
    const auto parsed = parse_condition(text);
    ASSERT_FALSE(parsed) << text;
    EXPECT_EQ(parsed.error().kind, ErrorKind::usage) << text;
    EXPECT_NE(parsed.error().hint.find("for example: --on "), std::string::npos) << text;
  }
}

TEST(Condition, the_example_is_of_the_condition_that_was_meant) {
  for (const std::string text : {"stall", "gil", "gil=1h", "cpu", "cpu=90", "cpu-wait=x", "memory", "log",
                                 "log=/a", "signal", "http", "http=", "death=1"}) {
    const auto parsed = parse_condition(text);
    ASSERT_FALSE(parsed) << text;
    const std::string name = text.substr(0, text.find('='));
    const size_t at = parsed.error().hint.find("--on ");
    ASSERT_NE(at, std::string::npos);
    EXPECT_NE(parsed.error().hint.find(name, at), std::string::npos) << parsed.error().hint;
    // What is shown works.
    std::string example = parsed.error().hint.substr(at + 5);
    std::erase(example, '\'');
    EXPECT_TRUE(parse_condition(example)) << example;
  }
}

TEST(Condition, several_in_one_text_are_refused_with_the_way_to_give_them) {
  const auto hint = [](const char* text) {
    const auto parsed = parse_condition(text);
    return parsed ? std::string("none") : parsed.error().hint;
  };
  EXPECT_EQ(hint("death,stall=1s"), "give --on for each: --on death --on stall=1s");
  EXPECT_EQ(hint("stall=1s,gil=100ms"), "give --on for each: --on stall=1s --on gil=100ms");
  EXPECT_EQ(hint("log=/var/log/app:a,death"), "none") << "a regular expression";
  EXPECT_EQ(hint("deaths,x").find("--on for each"), std::string::npos);
}

TEST(Condition, hostile_text_is_refused) {
  EXPECT_FALSE(parse_condition(std::string(1 << 20, 'a')));
  EXPECT_FALSE(parse_condition("log=/a:" + std::string(1 << 20, '(')));
  EXPECT_FALSE(parse_condition(std::string_view("stall=200ms\0", 12)));
  EXPECT_FALSE(parse_condition("stall=" + std::string(4000, '9')));
}

TEST(Condition, every_kind_has_a_name_of_its_own) {
  for (const char* text : {"stall=1s", "gil=1s", "cpu=1%", "cpu-wait=1%", "memory=1%", "log=a:b",
                           "signal=USR1", "http=x", "death"}) {
    const auto parsed = parse_condition(text);
    ASSERT_TRUE(parsed) << text;
    EXPECT_TRUE(std::string_view(text).starts_with(kind_name(parsed->kind))) << text;
  }
}

}  // namespace
}  // namespace phlox::incidents
