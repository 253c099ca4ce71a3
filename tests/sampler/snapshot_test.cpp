#include "phlox/sampler/capture/snapshot.h"

#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "support/fake_interpreter.h"

namespace phlox::sampler {
namespace {

TEST(Snapshot, foresees_what_the_sample_before_needed) {
  test::FakeMemory memory;
  const auto a = memory.allocate(64);
  const auto far = memory.allocate(10 * Snapshot::kPage, Snapshot::kPage) + 9 * Snapshot::kPage;
  memory.put_value<uint64_t>(a, 1);
  memory.put_value<uint64_t>(far, 2);
  Snapshot snapshot(memory);
  snapshot.capture();
  uint64_t value = 0;
  ASSERT_TRUE(snapshot.load(a, value));
  EXPECT_EQ(value, 1U);
  ASSERT_TRUE(snapshot.load(far, value));
  EXPECT_EQ(value, 2U);
  EXPECT_EQ(snapshot.follow_ups(), 2U);

  memory.put_value<uint64_t>(a, 11);
  const size_t calls = memory.calls();
  snapshot.capture();
  ASSERT_TRUE(snapshot.load(a, value));
  EXPECT_EQ(value, 11U);
  ASSERT_TRUE(snapshot.load(far, value));
  EXPECT_EQ(snapshot.follow_ups(), 0U);
  EXPECT_EQ(memory.calls(), calls + 1) << "one system call for everything";
}

TEST(Snapshot, bytes_are_those_of_the_capture_until_the_next_one) {
  test::FakeMemory memory;
  const auto a = memory.allocate(8);
  memory.put_value<uint64_t>(a, 1);
  Snapshot snapshot(memory);
  snapshot.capture();
  uint64_t value = 0;
  ASSERT_TRUE(snapshot.load(a, value));
  memory.put_value<uint64_t>(a, 2);
  ASSERT_TRUE(snapshot.load(a, value));
  EXPECT_EQ(value, 1U);
}

TEST(Snapshot, reads_across_a_page_border) {
  test::FakeMemory memory;
  const auto page = memory.allocate(2 * Snapshot::kPage, Snapshot::kPage);
  memory.put_value<uint64_t>(page + (Snapshot::kPage - 4), 0x1122334455667788);
  Snapshot snapshot(memory);
  for (int sample = 0; sample < 3; ++sample) {
    snapshot.capture();
    uint64_t value = 0;
    ASSERT_TRUE(snapshot.load(page + (Snapshot::kPage - 4), value));
    EXPECT_EQ(value, 0x1122334455667788U);
  }
}

TEST(Snapshot, a_page_that_went_away_does_not_take_the_others_with_it) {
  test::FakeMemory memory;
  std::vector<RemoteAddress> addresses;
  for (int i = 0; i < 5; ++i) {
    addresses.push_back(memory.allocate(3 * Snapshot::kPage, Snapshot::kPage));
    memory.put_value<int>(addresses.back(), i);
  }
  Snapshot snapshot(memory);
  snapshot.capture();
  int value = 0;
  for (const auto address : addresses) ASSERT_TRUE(snapshot.load(address, value));
  memory.make_unreadable(addresses[2], Snapshot::kPage);
  for (int sample = 0; sample < 3; ++sample) {
    snapshot.capture();
    for (size_t i = 0; i < addresses.size(); ++i) {
      EXPECT_EQ(snapshot.load(addresses[i], value), i != 2) << i;
      if (i != 2) {
        EXPECT_EQ(value, static_cast<int>(i));
      }
    }
  }
}

TEST(Snapshot, forgets_what_is_no_longer_needed) {
  test::FakeMemory memory;
  const auto a = memory.allocate(8, Snapshot::kPage);
  const auto b = memory.allocate(3 * Snapshot::kPage, Snapshot::kPage) + 2 * Snapshot::kPage;
  Snapshot snapshot(memory);
  snapshot.capture();
  uint64_t value = 0;
  snapshot.load(a, value);
  snapshot.load(b, value);
  for (uint64_t sample = 0; sample < 3 * Snapshot::kForget; ++sample) {
    snapshot.capture();
    snapshot.load(a, value);
  }
  EXPECT_EQ(snapshot.planned_pages(), 1U);
}

TEST(Snapshot, the_last_word_is_read_with_the_others) {
  test::FakeMemory memory;
  const auto a = memory.allocate(8);
  const auto word = memory.allocate(8, Snapshot::kPage);
  memory.put_value<int32_t>(word, 7);
  Snapshot snapshot(memory);
  snapshot.capture();
  EXPECT_FALSE(snapshot.last());
  uint64_t value = 0;
  snapshot.load(a, value);
  const size_t calls = memory.calls();
  snapshot.capture(word);
  EXPECT_EQ(snapshot.last(), 7);
  EXPECT_EQ(memory.calls(), calls + 1);
  memory.make_unreadable(word, 8);
  snapshot.capture(word);
  EXPECT_FALSE(snapshot.last());
  EXPECT_TRUE(snapshot.load(a, value));
}

TEST(Snapshot, the_last_word_is_as_of_after_the_last_byte) {
  test::FakeMemory memory;
  const auto a = memory.allocate(8, Snapshot::kPage);
  const auto b = memory.allocate(8, Snapshot::kPage);
  const auto word = memory.allocate(8, Snapshot::kPage);
  memory.put_value<int32_t>(word, 7);
  Snapshot snapshot(memory);
  uint64_t value = 0;
  snapshot.capture(word);
  memory.put_value<int32_t>(word, 8);
  snapshot.load(a, value);
  EXPECT_EQ(snapshot.last(), 8);
  memory.put_value<int32_t>(word, 9);
  snapshot.want(b, 8, true);
  snapshot.fetch_wanted();
  EXPECT_EQ(snapshot.last(), 9);
}

TEST(Snapshot, what_is_wanted_comes_with_one_call_and_in_passing_is_not_foreseen) {
  test::FakeMemory memory;
  std::vector<RemoteAddress> addresses;
  for (int i = 0; i < 40; ++i) {
    addresses.push_back(memory.allocate(256, Snapshot::kPage) + 100);
    memory.put_value<uint64_t>(addresses.back(), 1000 + static_cast<uint64_t>(i));
  }
  Snapshot snapshot(memory);
  for (int sample = 0; sample < 3; ++sample) {
    snapshot.capture();
    const size_t calls = memory.calls();
    for (size_t i = addresses.size(); i-- > 0;) snapshot.want(addresses[i], 8, true);
    snapshot.fetch_wanted();
    EXPECT_EQ(memory.calls(), calls + 1);
    for (size_t i = 0; i < addresses.size(); ++i) {
      uint64_t value = 0;
      ASSERT_TRUE(snapshot.load(addresses[i], value));
      EXPECT_EQ(value, 1000 + i);
    }
    EXPECT_EQ(memory.calls(), calls + 1);
    EXPECT_EQ(snapshot.follow_ups(), 1U);
    EXPECT_EQ(snapshot.planned_pages(), 0U);
  }
}

TEST(Snapshot, something_gone_among_what_is_wanted_leaves_the_others) {
  test::FakeMemory memory;
  const auto a = memory.allocate(8, Snapshot::kPage);
  const auto b = memory.allocate(8, 4 * Snapshot::kPage);
  const auto c = memory.allocate(8, 4 * Snapshot::kPage);
  memory.put_value<uint64_t>(a, 1);
  memory.put_value<uint64_t>(c, 3);
  memory.make_unreadable(b, 8);
  Snapshot snapshot(memory);
  snapshot.capture();
  for (const auto address : {a, b, c}) snapshot.want(address, 8, true);
  snapshot.fetch_wanted();
  uint64_t value = 0;
  EXPECT_TRUE(snapshot.load(a, value));
  EXPECT_EQ(value, 1U);
  EXPECT_FALSE(snapshot.load(b, value));
  EXPECT_TRUE(snapshot.load(c, value));
  EXPECT_EQ(value, 3U);
}

TEST(Snapshot, only_the_bytes_that_were_used_are_foreseen) {
  test::FakeMemory memory;
  const auto page = memory.allocate(2 * Snapshot::kPage, Snapshot::kPage);
  Snapshot snapshot(memory);
  snapshot.capture();
  uint64_t value = 0;
  snapshot.load(page + 1024, value);
  snapshot.load(page + Snapshot::kPage - 4, value);  // across the border
  snapshot.capture();
  EXPECT_NE(snapshot.peek(page + 1024, 8), nullptr);
  EXPECT_NE(snapshot.peek(page + 2048, 8), nullptr);
  EXPECT_NE(snapshot.peek(page + Snapshot::kPage - 4, 8), nullptr);
  EXPECT_EQ(snapshot.peek(page + 512, 8), nullptr);
  EXPECT_EQ(snapshot.peek(page + Snapshot::kPage + 64, 8), nullptr);
  // Asked for all the same, it is there, and foreseen.
  EXPECT_TRUE(snapshot.load(page + 512, value));
  snapshot.capture();
  EXPECT_NE(snapshot.peek(page + 512, 8), nullptr);
  EXPECT_NE(snapshot.peek(page + 1024, 8), nullptr);
}

TEST(Snapshot, a_sample_for_one_leaves_out_what_only_others_asked_for) {
  test::FakeMemory memory;
  const auto word = [&] { return memory.allocate(8, 2 * Snapshot::kPage); };
  const RemoteAddress of_one = word(), of_two = word(), of_both = word(), of_everybody = word();
  Snapshot snapshot(memory);
  const auto sample = [&] {
    uint64_t value = 0;
    snapshot.read_as(1);
    for (const auto address : {of_one, of_both}) EXPECT_TRUE(snapshot.load(address, value));
    snapshot.read_as(2);
    for (const auto address : {of_two, of_both}) EXPECT_TRUE(snapshot.load(address, value));
    snapshot.read_as(Snapshot::kEverybody);
    EXPECT_TRUE(snapshot.load(of_everybody, value));
  };
  for (int i = 0; i < 3; ++i) {
    snapshot.capture();
    sample();
  }
  EXPECT_EQ(snapshot.follow_ups(), 0U);
  snapshot.capture_for(1);
  EXPECT_TRUE(snapshot.is_for(1));
  EXPECT_FALSE(snapshot.is_for(2));
  for (const auto address : {of_one, of_both, of_everybody}) EXPECT_NE(snapshot.peek(address, 8), nullptr);
  EXPECT_EQ(snapshot.peek(of_two, 8), nullptr);
  // If it is requested all the same, it is there; it stays the other's if it is not requested again.
  sample();
  EXPECT_EQ(snapshot.follow_ups(), 1U);
  snapshot.capture();
  EXPECT_TRUE(snapshot.is_for(2));
  for (const auto address : {of_one, of_two, of_both, of_everybody})
    EXPECT_NE(snapshot.peek(address, 8), nullptr);
}

TEST(Snapshot, a_sample_at_several_brings_what_any_of_them_needs_and_the_last_word) {
  test::FakeMemory memory;
  Snapshot snapshot(memory);
  constexpr size_t kReaders = 5;
  std::array<RemoteAddress, kReaders> of;
  const auto word = memory.allocate(4);
  memory.put_value<int32_t>(word, 3);
  uint64_t value = 0;
  for (auto& address : of) address = memory.allocate(8, Snapshot::kPage);
  snapshot.capture();
  for (size_t i = 0; i < kReaders; ++i) {
    snapshot.read_as(static_cast<Snapshot::Reader>(i + 1));
    EXPECT_TRUE(snapshot.load(of[i], value));
  }
  const size_t calls = memory.calls();
  const std::array<Snapshot::Reader, 3> asked{5, 1, 2};
  snapshot.capture_for(asked, word);
  EXPECT_EQ(memory.calls(), calls + 1);
  EXPECT_EQ(snapshot.last(), 3);
  for (size_t i = 0; i < kReaders; ++i) {
    const bool is_asked = i == 0 || i == 1 || i == 4;
    EXPECT_EQ(snapshot.peek(of[i], 8) != nullptr, is_asked) << i;
    EXPECT_EQ(snapshot.is_for(static_cast<Snapshot::Reader>(i + 1)), is_asked) << i;
  }
}

TEST(Snapshot, what_one_needs_is_kept_while_only_others_are_read) {
  test::FakeMemory memory;
  const auto a = memory.allocate(8, Snapshot::kPage);
  const auto b = memory.allocate(8, 3 * Snapshot::kPage) + 2 * Snapshot::kPage;
  Snapshot snapshot(memory);
  uint64_t value = 0;
  const auto sample = [&](Snapshot::Reader reader, RemoteAddress address) {
    snapshot.capture_for(reader);
    snapshot.read_as(reader);
    snapshot.load(address, value);
  };
  sample(1, a);
  for (uint64_t i = 0; i < 20 * Snapshot::kForget; ++i) sample(2, b);
  sample(1, a);
  EXPECT_EQ(snapshot.follow_ups(), 0U);
}

TEST(Snapshot, bytes_outside_the_plan_come_with_it_and_are_not_planned) {
  test::FakeMemory memory;
  const auto a = memory.allocate(8, Snapshot::kPage);
  const auto stack = memory.allocate(10'000, Snapshot::kPage);
  memory.put_value<uint64_t>(stack + 9000, 7);
  Snapshot snapshot(memory);
  uint64_t value = 0;
  for (int i = 0; i < 3; ++i) {
    const size_t calls = memory.calls();
    snapshot.capture_for(Snapshot::kEverybody, {stack + 100, 9000});
    EXPECT_EQ(memory.calls(), calls + 1);
    EXPECT_TRUE(snapshot.load(stack + 9000, value));
    EXPECT_EQ(value, 7U);
    EXPECT_NE(snapshot.peek(stack + 100, 9000), nullptr);
    EXPECT_EQ(snapshot.peek(stack + 96, 8), nullptr);
    EXPECT_EQ(snapshot.peek(stack + 9096, 8), nullptr);
    EXPECT_EQ(snapshot.planned_pages(), i == 0 ? 0U : 1U);
    EXPECT_TRUE(snapshot.load(a, value));
  }
  snapshot.capture_for(Snapshot::kEverybody);
  EXPECT_EQ(snapshot.peek(stack + 9000, 8), nullptr);
  // Where they cannot be read, the plan is.
  memory.make_unreadable(stack + Snapshot::kPage, Snapshot::kPage);
  snapshot.capture_for(Snapshot::kEverybody, {stack + 100, 9000});
  EXPECT_EQ(snapshot.peek(stack + 100, 9000), nullptr);
  EXPECT_NE(snapshot.peek(a, 8), nullptr);
}

TEST(Snapshot, what_is_expected_comes_with_the_next_sample) {
  test::FakeMemory memory;
  const auto a = memory.allocate(300, Snapshot::kPage);
  Snapshot snapshot(memory);
  snapshot.capture();
  snapshot.expect(1, a, 300);
  snapshot.capture_for(2);
  EXPECT_EQ(snapshot.peek(a, 300), nullptr);
  snapshot.capture_for(1);
  EXPECT_NE(snapshot.peek(a, 300), nullptr);
}

TEST(Snapshot, torn_pointers_are_refused_without_a_read) {
  test::FakeMemory memory;
  Snapshot snapshot(memory);
  snapshot.capture();
  const size_t calls = memory.calls();
  for (const uint64_t address :
       {uint64_t{0}, uint64_t{8}, ~uint64_t{0}, ~uint64_t{0} - 7, uint64_t{1} << 63, uint64_t{1} << 48}) {
    EXPECT_EQ(snapshot.find(RemoteAddress(address), 80), nullptr);
  }
  EXPECT_EQ(memory.calls(), calls);
}

}  // namespace
}  // namespace phlox::sampler
