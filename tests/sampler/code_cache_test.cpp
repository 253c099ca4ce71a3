#include "phlox/sampler/capture/code_cache.h"

#include <gtest/gtest.h>

#include "phlox/sampler/observe/records.h"
#include "support/fake_interpreter.h"
#include "support/layout_rows.h"

namespace phlox::sampler {
namespace {

class CodeCaches : public testing::TestWithParam<const python::Layout*> {
 protected:
  CodeCaches()
      : fake_(*GetParam()),
        ring_(1 << 20),
        cache_(fake_.layout(), fake_.memory(), ring_),
        snapshot_(fake_.memory()) {}

  uint32_t number(RemoteAddress code) {
    snapshot_.capture();
    cache_.begin_sample();
    const auto* entry = cache_.find(code, snapshot_);
    return entry == nullptr ? 0 : entry->number;
  }
  // The same in a sample that has the interpreter's epoch, and counts or does not.
  uint32_t number_by_epoch(RemoteAddress code, bool counts = true) {
    snapshot_.capture();
    cache_.begin_sample(fake_.state(), python::code_epoch(fake_.interpreter(), fake_.state(), snapshot_));
    const auto* entry = cache_.find(code, snapshot_);
    if (counts) cache_.keep_proved();
    return entry == nullptr ? 0 : entry->number;
  }
  bool has_epoch() const { return GetParam()->traits.code_epoch != python::CodeEpoch::none; }
  // As the interpreter could only do it by making another code object.
  void rename(RemoteAddress code) { fake_.set(code, GetParam()->code.name, fake_.string("other")); }
  // What the consumer was sent, in order.
  std::vector<std::string> names() {
    std::vector<std::string> out;
    for (auto bytes = ring_.front(); bytes.data() != nullptr; ring_.pop(), bytes = ring_.front()) {
      CodeRecord record;
      EXPECT_EQ(bytes.size(), sizeof record);
      std::memcpy(&record, bytes.data(), sizeof record);
      retired_.push_back(record.retired);
      const auto code = python::decode_code(fake_.layout(), *ring_.take_handed().code);
      out.push_back(code ? code->name : "?");
    }
    return out;
  }

  test::FakeInterpreter fake_;
  Ring ring_;
  CodeCache cache_;
  Snapshot snapshot_;
  std::vector<uint32_t> retired_;
};

TEST_P(CodeCaches, the_same_code_object_is_sent_once) {
  const auto f = fake_.code("f");
  const auto g = fake_.code("g");
  const uint32_t first = number(f);
  EXPECT_NE(first, 0U);
  EXPECT_EQ(number(f), first);
  EXPECT_NE(number(g), first);
  EXPECT_EQ(number(f), first);
  EXPECT_EQ(names(), (std::vector<std::string>{"f", "g"}));
}

TEST_P(CodeCaches, another_code_object_at_the_same_address_is_another) {
  const auto f = fake_.make_code({.name = "first"});
  const uint32_t first = number(f);
  fake_.replace_code(f, {.name = "other"});
  const uint32_t second = number(f);
  EXPECT_NE(second, first);
  EXPECT_EQ(names(), (std::vector<std::string>{"first", "other"}));
  EXPECT_EQ(retired_, (std::vector<uint32_t>{0, first}));
}

TEST_P(CodeCaches, what_cannot_be_read_is_unknown_and_is_read_again) {
  const auto f = fake_.make_code({.name = "f"});
  EXPECT_NE(number(f), 0U);
  fake_.memory().make_unreadable(f, *GetParam()->code.size);
  EXPECT_EQ(number(f), 0U);
  fake_.memory().make_readable();
  EXPECT_NE(number(f), 0U);
}

TEST_P(CodeCaches, one_that_stayed_for_long_is_checked_every_time) {
  const auto f = fake_.make_code({.name = "first"});
  const uint32_t first = number(f);
  for (uint64_t sample = 0; sample < 3 * Snapshot::kForget; ++sample) {
    ASSERT_EQ(number(f), first);
    if (sample > Snapshot::kForget) {
      EXPECT_EQ(snapshot_.follow_ups(), 0U) << sample << ": its bytes are foreseen";
    }
  }
  rename(f);
  const uint32_t second = number(f);
  EXPECT_NE(second, first);
  for (uint64_t sample = 0; sample < Snapshot::kForget; ++sample) ASSERT_EQ(number(f), second);
  fake_.memory().make_unreadable(f, *GetParam()->code.size);
  EXPECT_EQ(number(f), 0U);
}

// Before 3.12 the proof is many small things, which a look at another stack is not to bring with it.
TEST_P(CodeCaches, one_that_few_samples_meet_is_not_brought_by_the_others) {
  if (GetParam()->traits.code_proof == python::CodeProof::co_version) return;
  const auto often = fake_.make_code({.name = "often"});
  const auto now_and_then = fake_.make_code({.name = "now and then"});
  number(now_and_then);
  for (uint64_t sample = 0; sample < 2 * Snapshot::kForget; ++sample) number(often);
  const size_t planned = snapshot_.planned_pages();
  const uint32_t rare = number(now_and_then);
  for (uint64_t sample = 0; sample < 4 * Snapshot::kForget; ++sample) {
    ASSERT_NE(number(often), 0U);
    EXPECT_EQ(snapshot_.follow_ups(), 0U) << sample;
    EXPECT_EQ(snapshot_.planned_pages(), planned) << sample;
    if (sample % 8 == 0) {
      ASSERT_EQ(number(now_and_then), rare) << sample;
    }
  }
  rename(now_and_then);
  EXPECT_NE(number(now_and_then), rare);
}

TEST_P(CodeCaches, is_valid_during_its_epoch) {
  const auto f = fake_.make_code({.name = "first"});
  const uint32_t first = number_by_epoch(f);
  EXPECT_NE(first, 0U);
  rename(f);
  EXPECT_EQ(number_by_epoch(f) == first, has_epoch());
  fake_.replace_code(f, {.name = "another"});
  EXPECT_NE(number_by_epoch(f), first);
  EXPECT_EQ(names().back(), "another");
}

TEST_P(CodeCaches, a_sample_that_does_not_count_proves_nothing) {
  const auto f = fake_.make_code({.name = "first"});
  const uint32_t first = number_by_epoch(f, false);
  rename(f);
  EXPECT_NE(number_by_epoch(f), first);
}

TEST_P(CodeCaches, an_epoch_that_falls_is_another_interpreters) {
  const auto f = fake_.make_code({.name = "first"});
  fake_.set_epoch(1000);
  const uint32_t first = number_by_epoch(f);
  fake_.set_epoch(999);
  const uint32_t again = number_by_epoch(fake_.code("g"));
  EXPECT_NE(again, first);
  fake_.set_epoch(1000);
  rename(f);
  EXPECT_NE(number_by_epoch(f), first);
}

// A word of the interpreter numbers code objects.
bool numbers_code(const python::Layout& row) {
  return row.traits.code_epoch != python::CodeEpoch::generation &&
         row.traits.code_epoch != python::CodeEpoch::none;
}
class CodeNumbers : public CodeCaches {};

TEST_P(CodeNumbers, a_word_below_a_version_it_gave_is_not_believed) {
  fake_.code("f");
  const auto g = fake_.make_code({.name = "g"});
  fake_.set_epoch(1);
  const uint32_t first = number_by_epoch(g);
  rename(g);
  EXPECT_NE(number_by_epoch(g), first);
}

// A consumer that takes what it is sent; gives how many entries it was to free.
size_t drain(Ring& ring) {
  size_t freed = 0;
  for (auto bytes = ring.front(); bytes.data() != nullptr; ring.pop(), bytes = ring.front()) {
    const Handed handed = ring.take_handed();
    if (bytes.size() != sizeof(CodeRecord))
      freed += std::static_pointer_cast<CodeCache::Entries>(handed.garbage)->size();
  }
  return freed;
}

TEST_P(CodeCaches, of_too_many_all_are_forgotten_and_sent_again) {
  CodeCache cache(fake_.layout(), fake_.memory(), ring_, {.codes = 10, .bytes = size_t{1} << 30});
  std::vector<RemoteAddress> codes;
  for (int i = 0; i < 11; ++i) codes.push_back(fake_.make_code({.name = "f" + std::to_string(i)}));
  snapshot_.capture();
  cache.begin_sample();
  uint32_t first = 0;
  for (const RemoteAddress code : codes) first = cache.find(code, snapshot_)->number;
  EXPECT_EQ(drain(ring_), 0U);
  const uint64_t generation = cache.generation();
  snapshot_.capture();
  cache.begin_sample();
  EXPECT_NE(cache.generation(), generation);
  EXPECT_NE(cache.find(codes.back(), snapshot_)->number, first)
      << "the consumer does not know the old one any more";
  EXPECT_EQ(drain(ring_), 11U);
}

// The limits are the same for every row, and megabytes of names take time.
class FullCodeCaches : public CodeCaches {};

TEST_P(FullCodeCaches, of_too_many_bytes_all_are_forgotten) {
  CodeCache cache(fake_.layout(), fake_.memory(), ring_, {.codes = 1000, .bytes = 300'000});
  size_t freed = 0;
  for (int i = 0; i < 20; ++i) {
    const auto code = fake_.make_code({.name = std::string(50'000, 'n') + std::to_string(i)});
    snapshot_.capture();
    cache.begin_sample();
    EXPECT_NE(cache.find(code, snapshot_), nullptr);
    freed += drain(ring_);
  }
  EXPECT_GT(freed, 8U);
  EXPECT_EQ(cache.not_read(), 0U);
}

TEST_P(FullCodeCaches, what_a_late_consumer_has_no_room_for_is_not_read_and_is_counted) {
  std::vector<RemoteAddress> codes;
  const size_t enough = 100;  // of 100 KB: more than are sent in one sample
  for (size_t i = 0; i < enough; ++i)
    codes.push_back(fake_.make_code({.name = std::string(100'000, 'n') + std::to_string(i)}));
  snapshot_.capture();
  cache_.begin_sample();
  for (const RemoteAddress code : codes) ASSERT_NE(cache_.find(code, snapshot_), nullptr);
  EXPECT_GT(cache_.not_read(), 0U);
  EXPECT_EQ(cache_.find(codes.back(), snapshot_)->number, kNotRead);
  drain(ring_);
  snapshot_.capture();
  cache_.begin_sample();
  EXPECT_NE(cache_.find(codes.back(), snapshot_)->number, kNotRead) << "there is room again";
  drain(ring_);
}

INSTANTIATE_TEST_SUITE_P(EveryRow, CodeCaches, testing::ValuesIn(test::layout_rows()), test::row_name);
INSTANTIATE_TEST_SUITE_P(LastRow, FullCodeCaches, testing::Values(&python::layouts().back()), test::row_name);
INSTANTIATE_TEST_SUITE_P(EveryRow, CodeNumbers, testing::ValuesIn(test::layout_rows(numbers_code)),
                         test::row_name);

}  // namespace
}  // namespace phlox::sampler
