#include "phlox/view/system_calls.h"

#include <gtest/gtest.h>

namespace phlox::view {

using namespace profile;

namespace {

TEST(SystemCalls, have_names) {
  EXPECT_EQ(system_call_name(202, "x86_64"), "futex");
  EXPECT_EQ(system_call_name(98, "aarch64"), "futex");
  EXPECT_EQ(system_call_name(25, "aarch64"), "fcntl");
  EXPECT_EQ(system_call_name(232, "x86_64"), "epoll_wait");
  EXPECT_EQ(system_call_name(9999, "x86_64"), "system call 9999");
  EXPECT_EQ(system_call_name(-1, "aarch64"), "no system call");
}

}  // namespace
}  // namespace phlox::view
