#include "phlox/mcp/fitted.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace phlox::mcp {
namespace {

TEST(Fitted, what_fits_is_unchanged) {
  std::vector<std::string> cut;
  EXPECT_EQ(write_json(fitted(Json::object({{"a", "b"}}), 100, cut)), R"({"a":"b"})");
  EXPECT_EQ(fitted_text("one\ntwo\n", 100, cut), "one\ntwo\n");
  EXPECT_TRUE(cut.empty());
}

TEST(Fitted, lists_are_shortened_until_it_fits_and_what_is_left_out_is_said) {
  Json rows = Json::array();
  for (int i = 0; i < 500; ++i) rows.add(Json::object({{"name", std::string(100, 'x')}}));
  std::vector<std::string> cut;
  const Json less = fitted(Json::object({{"functions", rows}, {"total", Json::integer(7)}}), 5'000, cut);
  EXPECT_LE(write_json(less).size(), 5'000U);
  EXPECT_EQ(less.find("functions")->items().size(), 30U);
  EXPECT_EQ(less.find("total")->text(), "7");
  ASSERT_EQ(cut.size(), 2U);
  EXPECT_EQ(cut[0], "functions: 30 of 500");
}

TEST(Fitted, a_text_is_cut_between_letters) {
  std::string text;
  for (int i = 0; i < 3'000; ++i) text += "é";
  std::vector<std::string> cut;
  const Json less = fitted(Json::object({{"a", text}}), 3'000, cut);
  EXPECT_LE(write_json(less).size(), 3'000U);
  EXPECT_EQ(less.find("a")->text().substr(0, 2), "é");
  EXPECT_EQ(write_json(less).find("\\uFFFD"), std::string::npos);
  EXPECT_FALSE(cut.empty());
}

TEST(Fitted, what_cannot_fit_is_nothing) {
  Json many = Json::object();
  for (int i = 0; i < 1'000; ++i) many.set("member" + std::to_string(i), "x");
  std::vector<std::string> cut;
  EXPECT_EQ(write_json(fitted(many, 2'000, cut)), "{}");
  EXPECT_EQ(cut.size(), 1U);
}

TEST(Fitted, a_text_for_people_ends_after_a_whole_line) {
  std::vector<std::string> cut;
  EXPECT_EQ(fitted_text("first\nsecond\nthird\n", 14, cut), "first\nsecond\n");
  EXPECT_EQ(cut.size(), 1U);
  EXPECT_EQ(fitted_text(std::string(20, 'x'), 14, cut), std::string(14, 'x'));
}

}  // namespace
}  // namespace phlox::mcp
