#include "phlox/cli/values.h"

#include <gtest/gtest.h>

namespace phlox::cli {
namespace {

TEST(Pid, decimal_or_hexadecimal_and_nothing_else) {
  EXPECT_EQ(parse_pid("4711"), 4711);
  EXPECT_EQ(parse_pid("0x1267"), 4711);
  for (const char* text : {"", "0", "-1", "47 11", "4711x", "0x", "99999999999", "+1"}) {
    ASSERT_FALSE(parse_pid(text)) << text;
    EXPECT_EQ(parse_pid(text).error().kind, ErrorKind::usage);
  }
}

TEST(Duration, seconds_or_a_unit) {
  EXPECT_EQ(parse_duration("10"), 10 * kSecond);
  EXPECT_EQ(parse_duration("1.5"), 3 * kSecond / 2);
  EXPECT_EQ(parse_duration("500ms"), kSecond / 2);
  EXPECT_EQ(parse_duration("10s"), 10 * kSecond);
  EXPECT_EQ(parse_duration("2m"), 120 * kSecond);
  EXPECT_EQ(parse_duration("1h"), 3600 * kSecond);
  for (const char* text : {"", "0", "-1", "s", "ms", "1 s", "1d", "nan", "inf", "1e300", "1..2"})
    EXPECT_FALSE(parse_duration(text)) << text;
}

TEST(Rate, samples_per_second_or_as_fast_as_possible) {
  EXPECT_EQ(parse_rate("200"), 200);
  EXPECT_EQ(parse_rate("0.5"), 0.5);
  EXPECT_EQ(parse_rate("1000Hz"), 1000);
  EXPECT_EQ(parse_rate("max"), 0);
  for (const char* text : {"", "0", "-5", "nan", "1e9", "fast"}) EXPECT_FALSE(parse_rate(text)) << text;
}

TEST(Overhead, percent_or_off) {
  EXPECT_EQ(parse_overhead("2").value(), 2);
  EXPECT_EQ(parse_overhead("0.5%").value(), 0.5);
  EXPECT_FALSE(parse_overhead("off").value());
  for (const char* text : {"", "0", "-1", "101", "no"}) EXPECT_FALSE(parse_overhead(text)) << text;
}

TEST(Mode, hands_off_by_two_names_and_no_contradiction) {
  EXPECT_EQ(parse_mode("", false), sampler::Mode::automatic);
  EXPECT_EQ(parse_mode("auto", false), sampler::Mode::automatic);
  EXPECT_EQ(parse_mode("same-cpu", false), sampler::Mode::same_cpu);
  EXPECT_EQ(parse_mode("ptrace", false), sampler::Mode::ptrace);
  EXPECT_EQ(parse_mode("hands-off", true), sampler::Mode::hands_off);
  EXPECT_EQ(parse_mode("", true), sampler::Mode::hands_off);
  EXPECT_FALSE(parse_mode("ptrace", true));
}

TEST(OutputName, the_extension_chooses) {
  EXPECT_EQ(parse_output("")->kind, OutputKind::recording);
  EXPECT_EQ(parse_output("a.phlox")->kind, OutputKind::recording);
  EXPECT_EQ(parse_output("a.svg")->format, "svg");
  EXPECT_EQ(parse_output("a.TXT")->format, "collapsed");
  EXPECT_EQ(parse_output("-")->format, "collapsed");
  for (const char* text : {"a", "app.py", ".", "a.phlox.gz"}) EXPECT_FALSE(parse_output(text)) << text;
}

TEST(ShortName, is_what_people_call_the_program) {
  EXPECT_EQ(short_name({"python3", "app.py", "--port", "80"}), "app");
  EXPECT_EQ(short_name({"/usr/bin/python3.12", "-X", "dev", "-u", "/srv/shop/main.py"}), "main");
  EXPECT_EQ(short_name({"python", "-m", "pytest", "-x"}), "pytest");
  EXPECT_EQ(short_name({"python3", "-c", "print(1)"}), "python3");
  EXPECT_EQ(short_name({"/usr/sbin/uwsgi", "--ini", "x"}), "uwsgi");
  EXPECT_EQ(short_name({"python3"}), "python3");
  // An interpreter by another name is one all the same; its options and the program's are not the script.
  EXPECT_EQ(short_name({"/opt/bin/3.13t", "-u", "/srv/app.py", "0.4"}), "app");
  EXPECT_EQ(short_name({"/opt/bin/3.13t", "-X", "gil=0", "app.py"}), "app");
  EXPECT_EQ(short_name({"/opt/bin/3.13t", "-c", "print(1)"}), "3.13t");
  EXPECT_EQ(short_name({"gunicorn", "app:main", "setup.py"}), "gunicorn");
}

TEST(ShortName, never_leads_out_of_the_folder) {
  EXPECT_EQ(short_name({"python3", "../..;rm -rf *"}), "_rm_-rf__");
  EXPECT_EQ(short_name({"/"}), "process");
  EXPECT_EQ(short_name({}), "process");
  EXPECT_EQ(short_name({".."}), "process");
  EXPECT_EQ(short_name({"-o"}), "o");
  EXPECT_EQ(short_name({std::string(300, 'a')}).size(), 60U);
}

}  // namespace
}  // namespace phlox::cli
