#include "phlox/python/locals.h"

#include <gtest/gtest.h>

#include <map>
#include <sstream>

#include "phlox/python/code_object.h"
#include "phlox/python/locate.h"
#include "support/live_python.h"
#include "support/live_walk.h"
#include "support/pythons.h"
#include "support/source_path.h"

namespace phlox::python {
namespace {

std::string unhex(const std::string& hex) {
  std::string out;
  for (size_t i = 0; i + 1 < hex.size(); i += 2)
    out.push_back(static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16)));
  return out;
}

class EveryLocals : public testing::TestWithParam<test::Python> {};
INSTANTIATE_TEST_SUITE_P(Locals, EveryLocals, testing::ValuesIn(test::pythons()),
                         [](const auto& test) { return test.param.label; });

TEST_P(EveryLocals, are_shown_as_python_writes_them) {
  test::LivePython live(GetParam(), test::source_path("tests/python/locals_target.py"));
  ASSERT_TRUE(live.ready());
  const auto interpreter = locate(live.pid());
  ASSERT_TRUE(interpreter) << interpreter.error().message;
  // function -> variable -> (argument or not, text)
  using Variables = std::map<std::string, std::pair<bool, std::string>>;
  std::map<std::string, Variables> expected, got;
  for (const std::string& line : live.lines()) {
    std::istringstream words(line);
    std::string function, kind, name, value;
    words >> function >> kind >> name >> value;
    expected[function][name] = {kind == "a", unhex(value)};
  }
  ASSERT_EQ(expected.size(), 3U);
  const auto threads = test::live_threads(*interpreter, live);
  ASSERT_EQ(threads.size(), 1U);
  for (const RawFrame& frame : threads[0].frames) {
    if (!frame.code) continue;
    const auto code = read_code(interpreter->layout, live, frame.code);
    ASSERT_TRUE(code);
    if (!expected.contains(code->name)) continue;
    const auto locals = read_locals(interpreter->layout, live, frame.frame, frame.code);
    ASSERT_TRUE(locals) << code->name;
    for (const Local& local : *locals) got[code->name][local.name] = {local.argument, local.value};
  }
  for (const auto& [function, variables] : expected) {
    for (const auto& [name, what] : variables) {
      const auto& have = got[function][name];
      EXPECT_EQ(have.second, what.second) << function << " " << name;
      EXPECT_EQ(have.first, what.first) << function << " " << name;
    }
    // A list comprehension's variable of 3.12+ and 2.7 is the function's own; else nothing beyond what was
    // expected.
    got[function].erase("y");
    EXPECT_EQ(got[function].size(), variables.size()) << function;
  }
}

}  // namespace
}  // namespace phlox::python
