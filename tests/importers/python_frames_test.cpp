#include "phlox/importers/python_frames.h"

#include <gtest/gtest.h>

namespace phlox::importers {
namespace {

TEST(PythonFrames, what_a_trampoline_is_called_is_a_function_and_its_file) {
  const auto frame = python_frame("py::Worker.run.<locals>.step:/srv/app/main.py");
  ASSERT_TRUE(frame.has_value());
  EXPECT_EQ(frame->kind, profile::FrameKind::python);
  EXPECT_EQ(frame->function, "step");
  EXPECT_EQ(frame->qualified_name, "Worker.run.<locals>.step");
  EXPECT_EQ(frame->file, "/srv/app/main.py");
  EXPECT_EQ(frame->line, 0);
  EXPECT_EQ(python_frame("py::f:C:/odd.py")->file, "C:/odd.py");
  EXPECT_EQ(python_frame("py::<module>:<string>")->qualified_name, "<module>");
}

TEST(PythonFrames, other_names_are_none) {
  for (const char* name : {"", "py::", "py::f", "py:::file", "Interpreter", "my::f:x"})
    EXPECT_FALSE(python_frame(name).has_value()) << name;
}

TEST(PythonFrames, files_of_perf_inject_are_known_by_their_name) {
  EXPECT_TRUE(is_injected("/tmp/jitted-4711-12.so"));
  EXPECT_FALSE(is_injected("/usr/lib/libjitted-1.so"));
}

}  // namespace
}  // namespace phlox::importers
