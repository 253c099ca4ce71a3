#include "phlox/importers/thread_name.h"

#include <gtest/gtest.h>

#include <string>

namespace phlox::importers {
namespace {

// "name/tid"; empty: no thread.
std::string parsed(std::string_view text) {
  const auto thread = thread_name(text);
  return thread ? std::string(thread->name) + "/" + std::to_string(thread->tid) : "";
}

TEST(ThreadName, each_tools_thread_names_are_known) {
  EXPECT_EQ(parsed("Thread worker-1 (4711)"), "worker-1/4711");
  EXPECT_EQ(parsed("Thread 4711"), "/4711");
  EXPECT_EQ(parsed("thread (4711): worker-1"), "worker-1/4711");
  EXPECT_EQ(parsed("thread (4711)"), "/4711");
  EXPECT_EQ(parsed("Thread 4711 \"io waiter\""), "io waiter/4711");
  EXPECT_EQ(parsed("Thread 4711 \"\""), "/4711");
  EXPECT_EQ(parsed("tid:4711"), "/4711");
  EXPECT_EQ(parsed("thread (0x7F0011223344): worker-1"), "worker-1/0");
  EXPECT_EQ(parsed("thread (0x7F0011223344)"), "0x7F0011223344/0");
  EXPECT_EQ(parsed("Thread 55d2a2e1be40"), "55d2a2e1be40/0");
  EXPECT_EQ(parsed("Thread 0x7f0011223344"), "0x7f0011223344/0");
}

TEST(ThreadName, what_names_none_is_none) {
  for (const char* text : {"", "Thread", "Thread ", "Thread.run", "Thread run (app.py:3)", "thread (x)",
                           "Thread \"a\"", "Thread 12 \"", "tid:x", "main"})
    EXPECT_EQ(parsed(text), "") << text;
}

}  // namespace
}  // namespace phlox::importers
