#include "phlox/base/number_words.h"

#include <gtest/gtest.h>
#include <rapidjson/document.h>

#include <fstream>
#include <sstream>
#include <string>

#include "phlox/base/text.h"
#include "support/source_path.h"

namespace phlox {
namespace {

// The page is held to the same file (web/test/words_test.ts).
rapidjson::Document numbers() {
  std::ifstream file(test::source_path("tests/cases/numbers.json"));
  std::stringstream text;
  text << file.rdbuf();
  rapidjson::Document document;
  document.Parse(text.str().c_str());
  return document;
}

// Returns how many cases there are.
template <class Number, class Words>
size_t check(const char* kind, Words words) {
  const auto document = numbers();
  if (!document.IsObject() || !document.HasMember(kind)) return 0;
  for (const auto& row : document[kind].GetArray())
    EXPECT_EQ(words(row[0].Get<Number>()), row[1].GetString()) << kind << ": " << row[0].GetDouble();
  return document[kind].Size();
}

TEST(NumberWords, are_those_of_the_common_cases) {
  EXPECT_GE(check<int64_t>("times", time_words), 20U);
  EXPECT_GE(check<double>("shares", share_words), 10U);
  EXPECT_GE(check<double>("points", points_words), 5U);
  EXPECT_GE(check<uint64_t>("bytes", byte_words), 8U);
  EXPECT_GE(check<uint64_t>("counts", count_words), 4U);
}

TEST(NumberWords, have_an_end) {
  EXPECT_EQ(time_words(INT64_MIN), "-2562047 h 47 min");
  EXPECT_EQ(fixed_digits(1e300, 2).size(), 304U);
}

}  // namespace
}  // namespace phlox
