#include "phlox/target/awaits.h"

#include <gtest/gtest.h>

#include <cstring>
#include <initializer_list>
#include <vector>

#include "phlox/memory/recorded_memory.h"

namespace phlox::target {
namespace {

#ifdef __x86_64__

using Kind = Awaits::Kind;

constexpr uint64_t kFirst = 0x7000, kSecond = 0x7100;

class AwaitsOf : public testing::Test {
 protected:
  Awaits of(int64_t number, std::initializer_list<uint64_t> arguments) {
    BlockedIn call;
    call.running = false;
    call.number = number;
    std::copy(arguments.begin(), arguments.end(), call.arguments);
    return awaits_of(call, memory_);
  }
  void put(uint64_t at, const std::vector<uint64_t>& words) {
    memory_.add(RemoteAddress(at), std::as_bytes(std::span(words)));
  }
  memory::RecordedMemory memory_;
};

Awaits descriptor(int32_t number, int32_t others = 0) {
  return {Kind::descriptor, number, others};
}
Awaits child(int32_t number) {
  return {Kind::child, number, 0};
}
const Awaits kTime{.kind = Kind::time}, kUnknown{};

TEST_F(AwaitsOf, calls_of_a_descriptor_say_which) {
  EXPECT_EQ(of(0, {3, 0x1000, 10}), descriptor(3));
  EXPECT_EQ(of(45, {7}), descriptor(7)) << "recvfrom";
  EXPECT_EQ(of(232, {4}), descriptor(4)) << "epoll_wait";
  EXPECT_EQ(of(0, {0xffffffffffffffff}), kUnknown) << "no descriptor";
  EXPECT_EQ(of(202, {0x7f0000001000}), kUnknown) << "futex";
  EXPECT_EQ(of(-1, {}), kUnknown) << "in no call";
}

TEST_F(AwaitsOf, one_that_runs_waits_for_nothing) {
  EXPECT_EQ(awaits_of(BlockedIn{}, memory_), kUnknown);
}

TEST_F(AwaitsOf, children_are_known_by_their_number) {
  EXPECT_EQ(of(61, {4713}), child(4713));
  EXPECT_EQ(of(61, {0xffffffff}), kUnknown) << "any child";
  EXPECT_EQ(of(247, {1, 4713}), child(4713));
  EXPECT_EQ(of(247, {3, 9}), descriptor(9)) << "pidfd";
  EXPECT_EQ(of(247, {0, 0}), kUnknown) << "any child";
}

TEST_F(AwaitsOf, poll_says_the_first_descriptor) {
  put(kFirst, {5 | uint64_t{1} << 32});
  EXPECT_EQ(of(7, {kFirst, 1, 5000}), descriptor(5));
  EXPECT_EQ(of(271, {kFirst, 1}), descriptor(5));
  EXPECT_EQ(of(7, {kFirst, 2}), descriptor(5, 1));
  EXPECT_EQ(of(7, {0x9000, 1}), kUnknown) << "memory that is not there";
  EXPECT_EQ(of(7, {0, 0, 5000}), kTime);
}

TEST_F(AwaitsOf, select_says_the_last_descriptor) {
  put(kFirst, {0, uint64_t{1} << 2});
  EXPECT_EQ(of(23, {67, kFirst, 0, 0, 0}), descriptor(66));
  EXPECT_EQ(of(270, {67, 0, kFirst, 0, 0}), descriptor(66));
  put(kSecond, {1, 0});
  EXPECT_EQ(of(23, {67, kFirst, kSecond, 0}), descriptor(66, 1));
  put(kSecond, {0, uint64_t{1} << 2});
  EXPECT_EQ(of(23, {67, kFirst, kSecond, 0}), descriptor(66)) << "to read and to write";
  EXPECT_EQ(of(23, {70, kFirst, 0, 0}), kUnknown) << "more than there are";
  EXPECT_EQ(of(23, {1024, kFirst, 0, 0}), kUnknown);
  EXPECT_EQ(of(23, {67, 0x9000, 0, 0}), kUnknown);
}

TEST_F(AwaitsOf, select_of_none_is_sleep) {
  EXPECT_EQ(of(23, {0, 0, 0, 0, kSecond}), kTime);
  put(kFirst, {0, 0});
  EXPECT_EQ(of(23, {67, kFirst, 0, 0, kSecond}), kTime);
}

#endif

}  // namespace
}  // namespace phlox::target
