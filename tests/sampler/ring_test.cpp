#include "phlox/sampler/ring.h"

#include <gtest/gtest.h>

#include <numeric>
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
  std::vector<std::byte> record;
  if (!ring.pop(record)) return "(empty)";
  return std::string(reinterpret_cast<const char*>(record.data()), record.size());
}

TEST(Ring, gives_back_what_was_put_in_order_across_the_end_of_its_memory) {
  Ring ring(64);
  for (int i = 0; i < 100; ++i) {
    const std::string text = "record " + std::to_string(i);
    ASSERT_TRUE(ring.push(bytes(text), bytes("!")));
    ASSERT_TRUE(ring.push(bytes("x"), {}));
    EXPECT_EQ(pop(ring), text + "!");
    EXPECT_EQ(pop(ring), "x");
  }
  EXPECT_EQ(pop(ring), "(empty)");
}

TEST(Ring, refuses_what_does_not_fit_and_keeps_the_rest) {
  Ring ring(64);
  EXPECT_TRUE(ring.push(bytes(std::string(30, 'a')), {}));
  EXPECT_FALSE(ring.push(bytes(std::string(30, 'b')), {}));
  EXPECT_FALSE(ring.push(bytes(std::string(100, 'c')), {}));
  EXPECT_EQ(pop(ring), std::string(30, 'a'));
  EXPECT_TRUE(ring.push(bytes(std::string(30, 'b')), {}));
}

TEST(Ring, one_writer_and_one_reader_lose_and_change_nothing) {
  Ring ring(4096);
  constexpr uint64_t kRecords = 200'000;
  std::thread writer([&] {
    std::minstd_rand random(1);
    std::vector<uint64_t> body;
    for (uint64_t i = 0; i < kRecords; ++i) {
      body.assign(random() % 20, i);
      while (!ring.push(std::as_bytes(std::span(&i, 1)), std::as_bytes(std::span(body))))
        std::this_thread::yield();
    }
  });
  std::vector<std::byte> record;
  for (uint64_t expected = 0; expected < kRecords;) {
    if (!ring.pop(record)) {
      std::this_thread::yield();
      continue;
    }
    ASSERT_EQ(record.size() % 8, 0U);
    std::vector<uint64_t> words(record.size() / 8);
    std::memcpy(words.data(), record.data(), record.size());
    for (const uint64_t word : words) ASSERT_EQ(word, expected);
    ++expected;
  }
  writer.join();
}

}  // namespace
}  // namespace phlox::sampler
