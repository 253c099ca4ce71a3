#include "phlox/process/waits_for.h"

#include <gtest/gtest.h>

#include <cstring>
#include <initializer_list>
#include <vector>

#include "phlox/base/system_call_numbers.h"
#include "phlox/memory/recorded_memory.h"
#include "phlox/process/thread_probe.h"

namespace phlox::process {
namespace {

using Kind = WaitsFor::Kind;

// Of this machine; -1: it has no such call.
consteval int64_t call(std::string_view name) {
  return system_call(name).number(kOnAarch64);
}

constexpr uint64_t kFirst = 0x7000, kSecond = 0x7100;

class CallWaitsFor : public testing::Test {
 protected:
  WaitsFor of(int64_t number, std::initializer_list<uint64_t> arguments) {
    BlockedIn in;
    in.running = false;
    in.number = number;
    std::copy(arguments.begin(), arguments.end(), in.arguments);
    return waits_for(in, memory_);
  }
  void put(uint64_t at, const std::vector<uint64_t>& words) {
    memory_.add(RemoteAddress(at), std::as_bytes(std::span(words)));
  }
  memory::RecordedMemory memory_;
};

WaitsFor descriptor(int32_t number, int32_t others = 0) {
  return {Kind::descriptor, number, others};
}
WaitsFor child(int32_t number) {
  return {Kind::child, number, 0};
}
const WaitsFor kTime{.kind = Kind::time}, kUnknown{};

TEST_F(CallWaitsFor, calls_of_a_descriptor_say_which) {
  EXPECT_EQ(of(call("read"), {3, 0x1000, 10}), descriptor(3));
  EXPECT_EQ(of(call("recvfrom"), {7}), descriptor(7));
  EXPECT_EQ(of(call("epoll_pwait"), {4}), descriptor(4));
  EXPECT_EQ(of(call("read"), {0xffffffffffffffff}), kUnknown) << "no descriptor";
  EXPECT_EQ(of(call("futex"), {0x7f0000001000}), kUnknown);
  EXPECT_EQ(of(-1, {}), kUnknown) << "in no call";
}

TEST_F(CallWaitsFor, calls_that_one_machine_has_are_known_there_and_no_number_is_a_call) {
  put(kFirst, {5 | uint64_t{1} << 32});
  put(kSecond, {5});
  EXPECT_EQ(of(call("epoll_wait"), {4}), kOnAarch64 ? kUnknown : descriptor(4));
  EXPECT_EQ(of(call("poll"), {kFirst, 1, 5000}), kOnAarch64 ? kUnknown : descriptor(5));
  EXPECT_EQ(of(call("select"), {3, kSecond, 0, 0, 0}), kOnAarch64 ? kUnknown : descriptor(2, 1));
}

TEST_F(CallWaitsFor, one_that_runs_waits_for_nothing) {
  EXPECT_EQ(waits_for(BlockedIn{}, memory_), kUnknown);
}

TEST_F(CallWaitsFor, children_are_known_by_their_number) {
  EXPECT_EQ(of(call("wait4"), {4713}), child(4713));
  EXPECT_EQ(of(call("wait4"), {0xffffffff}), kUnknown) << "any child";
  EXPECT_EQ(of(call("waitid"), {1, 4713}), child(4713));
  EXPECT_EQ(of(call("waitid"), {3, 9}), descriptor(9)) << "pidfd";
  EXPECT_EQ(of(call("waitid"), {0, 0}), kUnknown) << "any child";
}

TEST_F(CallWaitsFor, poll_says_the_first_descriptor) {
  put(kFirst, {5 | uint64_t{1} << 32});
  EXPECT_EQ(of(call("ppoll"), {kFirst, 1, 5000}), descriptor(5));
  EXPECT_EQ(of(call("ppoll"), {kFirst, 1}), descriptor(5));
  EXPECT_EQ(of(call("ppoll"), {kFirst, 2}), descriptor(5, 1));
  EXPECT_EQ(of(call("ppoll"), {0x9000, 1}), kUnknown) << "memory that is not there";
  EXPECT_EQ(of(call("ppoll"), {0, 0, 5000}), kTime);
}

TEST_F(CallWaitsFor, select_says_the_last_descriptor) {
  put(kFirst, {0, uint64_t{1} << 2});
  EXPECT_EQ(of(call("pselect6"), {67, kFirst, 0, 0, 0}), descriptor(66));
  EXPECT_EQ(of(call("pselect6"), {67, 0, kFirst, 0, 0}), descriptor(66));
  put(kSecond, {1, 0});
  EXPECT_EQ(of(call("pselect6"), {67, kFirst, kSecond, 0}), descriptor(66, 1));
  put(kSecond, {0, uint64_t{1} << 2});
  EXPECT_EQ(of(call("pselect6"), {67, kFirst, kSecond, 0}), descriptor(66)) << "to read and to write";
  EXPECT_EQ(of(call("pselect6"), {70, kFirst, 0, 0}), kUnknown) << "more than there are";
  EXPECT_EQ(of(call("pselect6"), {1024, kFirst, 0, 0}), kUnknown);
  EXPECT_EQ(of(call("pselect6"), {67, 0x9000, 0, 0}), kUnknown);
}

TEST_F(CallWaitsFor, select_of_none_is_sleep) {
  EXPECT_EQ(of(call("pselect6"), {0, 0, 0, 0, kSecond}), kTime);
  put(kFirst, {0, 0});
  EXPECT_EQ(of(call("pselect6"), {67, kFirst, 0, 0, kSecond}), kTime);
}

}  // namespace
}  // namespace phlox::process
