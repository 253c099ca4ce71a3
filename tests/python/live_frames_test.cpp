// The frames of threads that stand in awkward code, against what the interpreter itself says of them.
#include <gtest/gtest.h>

#include <map>
#include <sstream>

#include "phlox/python/code_object.h"
#include "phlox/python/line_table.h"
#include "phlox/python/locate.h"
#include "support/live_python.h"
#include "support/live_walk.h"
#include "support/pythons.h"
#include "support/source_path.h"

namespace phlox::python {
namespace {

std::string unhex(const std::string& hex) {
  std::string out;
  for (size_t i = 0; hex != "-" && i + 1 < hex.size(); i += 2) {
    out.push_back(static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16)));
  }
  return out;
}

struct FrameRow {
  std::string name, qualified_name, file;
  int line = 0, first_line = 0;
  friend bool operator==(const FrameRow&, const FrameRow&) = default;
  friend std::ostream& operator<<(std::ostream& out, const FrameRow& t) {
    return out << t.qualified_name << " (" << t.name << ") at " << t.file.substr(0, 80) << ":" << t.line
               << " from " << t.first_line;
  }
};

// "name:qualname:file:line:first line"
FrameRow parse_frame(const std::string& word) {
  std::istringstream parts(word);
  std::string name, qualname, file, line, first_line;
  std::getline(parts, name, ':');
  std::getline(parts, qualname, ':');
  std::getline(parts, file, ':');
  std::getline(parts, line, ':');
  std::getline(parts, first_line, ':');
  return {unhex(name), unhex(qualname), unhex(file), std::stoi(line), std::stoi(first_line)};
}

class EveryLiveFrame : public testing::TestWithParam<test::Python> {};
INSTANTIATE_TEST_SUITE_P(LiveFrames, EveryLiveFrame, testing::ValuesIn(test::pythons()),
                         [](const auto& test) { return test.param.label; });

TEST_P(EveryLiveFrame, are_what_the_program_says_of_itself) {
  test::LivePython live(GetParam(), test::source_path("tests/python/stack_target.py"));
  ASSERT_TRUE(live.ready());
  const auto interpreter = locate(live.pid());
  ASSERT_TRUE(interpreter) << interpreter.error().message;
  const Layout& layout = interpreter->layout;
  std::map<uint64_t, std::vector<FrameRow>> expected;
  for (const std::string& line : live.lines()) {
    std::istringstream words(line);
    uint64_t ident = 0;
    words >> ident;
    for (std::string word; words >> word;) expected[ident].push_back(parse_frame(word));
  }
  ASSERT_GE(expected.size(), 31U);

  size_t compared = 0, frames = 0, shims = 0;
  for (const test::LiveThread& thread : test::live_threads(*interpreter, live)) {
    if (!expected.contains(thread.python_id)) continue;
    EXPECT_EQ(thread.walk.end, WalkEnd::base);
    std::vector<FrameRow> got;
    bool below_stop = false;
    for (const RawFrame& frame : thread.frames) {
      if (!frame.code) continue;
      const auto code = read_code(layout, live, frame.code);
      ASSERT_TRUE(code);
      shims += code->shim;
      if (code->shim) continue;
      const int32_t offset = instruction_offset(layout.traits, code->first_instruction, frame.instruction);
      if (below_stop)
        got.push_back({code->name, code->qualified_name, code->file, code->line(offset), code->first_line});
      below_stop = below_stop || code->name == "stop";
    }
    EXPECT_EQ(got, expected[thread.python_id]);
    ++compared;
    frames += got.size();
  }
  EXPECT_EQ(compared, expected.size());
  EXPECT_GT(frames, 300U);
  // A specialised call of a class puts a shim beneath __init__ (CALL_ALLOC_AND_ENTER_INIT, 3.13+).
  // Free-threaded 3.13 does not specialise (Python/specialize.c is off under Py_GIL_DISABLED).
  if (layout.traits.free_threaded) return;
  EXPECT_EQ(shims > 0, layout.major == 3 && layout.minor >= 13);
}

}  // namespace
}  // namespace phlox::python
