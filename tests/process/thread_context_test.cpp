#include "phlox/process/thread_context.h"

#include <gtest/gtest.h>

#include <cstring>
#include <map>

namespace phlox::process {
namespace {

// Words of a target's memory.
struct Words {
  std::map<uint64_t, uint64_t> words;
  bool operator()(RemoteAddress at, std::span<std::byte> into) const {
    const auto found = words.find(at.value);
    if (found == words.end() || into.size() != sizeof found->second) return false;
    std::memcpy(into.data(), &found->second, into.size());
    return true;
  }
};

ThreadVariable in_module(uint32_t module) {
  ThreadVariable variable;
  variable.module = module;
  variable.offset = 0x110;
  variable.vector = 8;
  variable.count = -16;
  variable.entry = 16;
  return variable;
}

TEST(ThreadContext, of_the_program_itself_lies_next_to_the_thread_pointer) {
  ThreadVariable variable;
  variable.offset = -0x40;
  EXPECT_EQ(address_of(variable, RemoteAddress(0x70000), Words()), RemoteAddress(0x6ffc0));
}

TEST(ThreadContext, of_a_library_lies_in_the_thread_s_block_of_it) {
  const RemoteAddress thread(0x70000);
  Words memory{{{0x70008, 0x80010}, {0x80000, 3}, {0x80040, 0x90000}}};
  EXPECT_EQ(address_of(in_module(3), thread, memory), RemoteAddress(0x90110));
  EXPECT_EQ(address_of(in_module(4), thread, memory), RemoteAddress()) << "the vector is shorter";
  memory.words[0x80040] = ~uint64_t{0};
  EXPECT_EQ(address_of(in_module(3), thread, memory), RemoteAddress()) << "this thread has not used it";
  memory.words.erase(0x80040);
  EXPECT_EQ(address_of(in_module(3), thread, memory), RemoteAddress());
  memory.words.clear();
  EXPECT_EQ(address_of(in_module(3), thread, memory), RemoteAddress());
}

// On aarch64, pthread_self() is not the thread pointer.
TEST(ThreadContext, is_found_from_what_pthread_self_gives) {
  struct Target {
    std::map<uint64_t, uint64_t> words;
    ThreadContext record;
    bool operator()(RemoteAddress at, std::span<std::byte> into) const {
      if (into.size() == sizeof record && at.value == 0x90000) {
        std::memcpy(into.data(), &record, sizeof record);
        return true;
      }
      return Words{words}(at, into);
    }
  };
  Target target{{{0x70740, 0x90000}}, {}};
  target.record.valid = target.record.trace[3] = target.record.span[1] = 1;
  ThreadVariable variable;
  variable.offset = 0x40;
  variable.self = 0x700;
  const auto found = read_thread_context(variable, 0x70000, target);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->trace[3], 1);
  variable.self = 0;
  EXPECT_FALSE(read_thread_context(variable, 0x70000, target));
}

TEST(ThreadContext, names_a_span_only_if_it_is_valid_and_complete) {
  ThreadContext context;
  EXPECT_FALSE(context.is_set());
  context.trace[15] = context.span[0] = 1;
  EXPECT_FALSE(context.is_set()) << "it is being changed";
  context.valid = 1;
  EXPECT_TRUE(context.is_set());
  context.valid = 2;
  EXPECT_FALSE(context.is_set());
  context.valid = 1;
  context.span[0] = 0;
  EXPECT_FALSE(context.is_set());
}

}  // namespace
}  // namespace phlox::process
