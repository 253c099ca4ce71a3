#include "phlox/sampler/observe/ring.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <random>
#include <string>
#include <thread>
#include <vector>

namespace phlox::sampler {
namespace {

std::span<const std::byte> bytes(const std::string& text) {
  return std::as_bytes(std::span(text));
}

std::string pop(Ring& ring) {
  const auto record = ring.front();
  if (record.data() == nullptr) return "(empty)";
  std::string text(reinterpret_cast<const char*>(record.data()), record.size());
  ring.pop();
  return text;
}

TEST(Ring, gives_back_what_was_put_in_order_across_the_end_of_its_memory) {
  Ring ring(64);
  for (int i = 0; i < 100; ++i) {
    const std::string text = "record " + std::to_string(i);
    ASSERT_TRUE(ring.push(bytes(text), bytes("!")));
    ASSERT_TRUE(ring.push(bytes("x")));
    EXPECT_EQ(pop(ring), text + "!");
    EXPECT_EQ(pop(ring), "x");
  }
  EXPECT_EQ(pop(ring), "(empty)");
}

TEST(Ring, fills_the_same_memory_again_when_it_was_empty) {
  Ring ring(1024);
  ASSERT_TRUE(ring.push(bytes("first")));
  const std::byte* first = ring.front().data();
  ring.pop();
  ASSERT_TRUE(ring.push(bytes("second")));
  ASSERT_TRUE(ring.push(bytes("third")));
  EXPECT_EQ(ring.front().data(), first);
  EXPECT_EQ(pop(ring), "second");
  EXPECT_NE(ring.front().data(), first);
  EXPECT_EQ(pop(ring), "third");
}

TEST(Ring, refuses_what_does_not_fit_and_keeps_the_rest) {
  Ring ring(64);
  EXPECT_TRUE(ring.push(bytes(std::string(30, 'a'))));
  EXPECT_FALSE(ring.push(bytes(std::string(30, 'b'))));
  EXPECT_FALSE(ring.push(bytes(std::string(100, 'c'))));
  EXPECT_EQ(pop(ring), std::string(30, 'a'));
  EXPECT_TRUE(ring.push(bytes(std::string(30, 'b'))));
}

// Of all records that were put, each a count and as many words after it, all equal to the count.
void lose_and_change_nothing(Ring& ring, uint64_t records, size_t most_words) {
  std::thread writer([&] {
    std::minstd_rand random(1);
    std::vector<uint64_t> body;
    for (uint64_t i = 0; i < records; ++i) {
      body.assign(random() % most_words, i);
      while (!ring.push(std::as_bytes(std::span(&i, 1)), std::as_bytes(std::span(body))))
        std::this_thread::yield();
    }
  });
  uint64_t wrong = 0;
  for (uint64_t expected = 0; expected < records;) {
    const auto record = ring.front();
    if (record.data() == nullptr) {
      std::this_thread::yield();
      continue;
    }
    std::vector<uint64_t> words(record.size() / 8);
    std::memcpy(words.data(), record.data(), words.size() * 8);
    wrong += static_cast<uint64_t>(
        std::count_if(words.begin(), words.end(), [&](uint64_t w) { return w != expected; }));
    wrong += record.size() % 8 + words.empty();
    ring.pop();
    // Late now and then, so that the records pile up.
    if (expected % 1000 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    ++expected;
  }
  writer.join();
  EXPECT_EQ(wrong, 0U);
  EXPECT_EQ(ring.front().data(), nullptr);
}

TEST(Ring, one_writer_and_one_reader_lose_and_change_nothing) {
  Ring ring(4096);
  lose_and_change_nothing(ring, 50'000, 20);
}

TEST(Ring, what_does_not_fit_near_goes_far_and_stays_in_order) {
  Ring ring(2 * 1024 * 1024);
  lose_and_change_nothing(ring, 50'000, 1500);
}

TEST(Ring, a_late_reader_finds_everything_in_order) {
  Ring ring(1024 * 1024);
  const std::vector<std::byte> body(10'000);
  uint64_t put = 0;
  for (; ring.push(std::as_bytes(std::span(&put, 1)), std::span<const std::byte>(body)); ++put) {
  }
  EXPECT_GT(put, 1024U * 1024 / 10'016);  // more than the far one holds
  uint64_t got = 0;
  for (auto record = ring.front(); record.data() != nullptr; ring.pop(), record = ring.front(), ++got) {
    uint64_t number = 0;
    std::memcpy(&number, record.data(), sizeof number);
    ASSERT_EQ(number, got);
    ASSERT_EQ(record.size(), 10'008U);
  }
  EXPECT_EQ(got, put);
  EXPECT_TRUE(ring.push(std::as_bytes(std::span(&put, 1))));
}

Handed handed(uint64_t address, size_t bytes = 100) {
  Handed one{std::make_unique<python::CodeCapture>(), nullptr};
  one.code->address = RemoteAddress(address);
  one.code->bytes.resize(bytes);
  return one;
}

TEST(Handover, an_object_arrives_with_its_record_and_counts_as_waiting_until_then) {
  Ring ring(1024);
  for (uint32_t i = 1; i <= 3; ++i) {
    Handed one = handed(i);
    ASSERT_TRUE(ring.push_with(one, i));
    EXPECT_EQ(one.code, nullptr);
  }
  EXPECT_GE(ring.waiting(), 300U);
  for (uint64_t i = 1; i <= 3; ++i) {
    ASSERT_NE(ring.front().data(), nullptr);
    EXPECT_EQ(ring.take_handed().code->address, RemoteAddress(i));
    ring.pop();
  }
  EXPECT_EQ(ring.waiting(), 0U);
}

TEST(Handover, one_without_room_stays_with_its_sender_and_the_others_in_order) {
  Ring ring(64);
  Handed first = handed(1), refused = handed(2), large = handed(3, Ring::kMostAside);
  ASSERT_TRUE(ring.push_with(first, uint64_t{1}));
  EXPECT_FALSE(ring.push_with(large, uint64_t{3})) << "its bytes";
  EXPECT_EQ(large.code->address, RemoteAddress(3));
  EXPECT_FALSE(ring.push_with(refused, std::array<std::byte, 64>())) << "its record";
  ASSERT_NE(refused.code, nullptr);
  EXPECT_EQ(refused.code->address, RemoteAddress(2));
  ASSERT_NE(ring.front().data(), nullptr);
  EXPECT_EQ(ring.take_handed().code->address, RemoteAddress(1));
  ring.pop();
  ASSERT_TRUE(ring.push_with(refused, uint64_t{2}));
  EXPECT_EQ(ring.take_handed().code->address, RemoteAddress(2));
}

TEST(Handover, what_nobody_took_is_freed_with_the_ring) {
  const auto garbage = std::make_shared<int>(1);
  {
    Ring ring(1 << 20);
    for (int i = 0; i < 10'000; ++i) {
      Handed one{nullptr, garbage};
      ASSERT_TRUE(ring.push_with(one, i));
    }
    EXPECT_EQ(garbage.use_count(), 10'001);
  }
  EXPECT_EQ(garbage.use_count(), 1);
}

TEST(Handover, a_writer_and_a_reader_at_once_lose_none) {
  constexpr uint64_t kObjects = 50'000;
  Ring ring(4096);
  std::thread writer([&ring] {
    for (uint64_t i = 1; i <= kObjects; ++i) {
      Handed one = handed(i);
      while (!ring.push_with(one, i)) std::this_thread::yield();
    }
  });
  for (uint64_t i = 1; i <= kObjects; ++i) {
    while (ring.front().data() == nullptr) std::this_thread::yield();
    ASSERT_EQ(ring.take_handed().code->address, RemoteAddress(i));
    ring.pop();
  }
  writer.join();
  EXPECT_EQ(ring.waiting(), 0U);
}

}  // namespace
}  // namespace phlox::sampler
