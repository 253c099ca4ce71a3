#include "phlox/importers/stack_root.h"

#include <gtest/gtest.h>

namespace phlox::importers {
namespace {

TEST(StackRoot, py_spy_names_processes_and_then_the_thread) {
  std::string_view frames =
      "process 12:\"python3 app.py\";process 34:\"python3 -c import a;run(3)\";thread (35): worker;main "
      "(a.py:1)";
  const StackRoot root = take_stack_root(frames);
  ASSERT_EQ(root.processes.size(), 2u);
  EXPECT_EQ(root.processes[0].pid, 12);
  EXPECT_EQ(root.processes[1].pid, 34);
  EXPECT_EQ(root.processes[1].command, "python3 -c import a;run(3)");
  ASSERT_TRUE(root.thread.has_value());
  EXPECT_EQ(root.thread->tid, 35);
  EXPECT_EQ(root.thread->name, "worker");
  EXPECT_EQ(frames, "main (a.py:1)");
}

TEST(StackRoot, austin_1_names_a_pthread) {
  std::string_view frames = "Process 3394;Thread 559161282e40;main (a.py);L3";
  const StackRoot root = take_stack_root(frames);
  ASSERT_EQ(root.processes.size(), 1u);
  EXPECT_EQ(root.processes[0].pid, 3394);
  EXPECT_EQ(root.thread->name, "559161282e40");
  EXPECT_EQ(frames, "main (a.py);L3");
}

TEST(StackRoot, frames_that_are_only_similar_stay) {
  for (const std::string_view text : {"process 12 of 20;a", "process 12:\"never closed;a",
                                      "process x:\"a\";b", "processor 1;a", "Process 1x;a"}) {
    std::string_view frames = text;
    const StackRoot root = take_stack_root(frames);
    EXPECT_TRUE(root.processes.empty()) << text;
    EXPECT_EQ(frames, text);
  }
  std::string_view last = "process 1:\"a\"";
  EXPECT_EQ(take_stack_root(last).processes.size(), 1u);
  EXPECT_TRUE(last.empty());
}

}  // namespace
}  // namespace phlox::importers
