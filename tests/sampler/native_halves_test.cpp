#include "phlox/sampler/kernel/native_halves.h"

#include <gtest/gtest.h>

#include <cstring>
#include <utility>
#include <vector>

#include "phlox/sampler/kernel/kernel_source.h"
#include "phlox/sampler/observe/records.h"
#include "phlox/sampler/observe/ring.h"
#include "support/kernel_bytes.h"

namespace phlox::sampler {
namespace {

constexpr uint64_t kStack = 0x7ffd00001000, kState = 0x555500000000;
constexpr uint32_t kThread = 77;

using Starts = std::vector<std::pair<uint64_t, uint64_t>>;
using Found = std::vector<std::pair<uint32_t, uint64_t>>;  // position, anchor

const python::Layout& layout_of(uint8_t minor) {
  return *python::find_layout(3, minor, {});
}

class StartsOf {
 public:
  explicit StartsOf(uint8_t minor) : layout_(layout_of(minor)), words_(64) {
    half_.stack_start = kStack;
    half_.thread = kThread;
  }
  // A CFrame at this word of the stack.
  StartsOf& cframe(size_t word, uint64_t current, uint64_t previous) {
    const auto put = [&](python::Offset field, uint64_t value) {
      if (field.present())
        std::memcpy(reinterpret_cast<std::byte*>(&words_[word]) + *field, &value, sizeof value);
    };
    put(layout_.cframe.current_frame, current);
    put(layout_.cframe.previous, previous);
    if (half_.cframe == 0) half_.cframe = at(word);
    return *this;
  }
  static uint64_t at(size_t word) { return kStack + word * 8; }

  Found found(const Starts& starts, size_t locations, size_t markers = 0, size_t left_out = 0) {
    const auto bytes = test::kernel_native_bytes(half_, {}, starts, words_);
    const auto record = parse_kernel_record(bytes);
    std::vector<EvaluationStart> all;
    find_starts(layout_, std::get<KernelNative>(record), kState, {locations, markers, left_out}, all);
    Found out;
    for (const EvaluationStart& one : all) out.emplace_back(one.position, one.anchor);
    return out;
  }

 private:
  const python::Layout& layout_;
  kernel_native half_{};
  std::vector<uint64_t> words_;
};

TEST(NativeStarts, entry_frames_are_the_anchors) {
  EXPECT_EQ(StartsOf(12).found({{0x7000, 2}, {0x8000, 5}}, 5), (Found{{0, 0x8000}, {3, 0x7000}}));
}

TEST(NativeStarts, an_evaluation_further_in_than_there_are_frames_is_none) {
  EXPECT_EQ(StartsOf(12).found({{0x7000, 2}, {0x8000, 9}}, 5), (Found{{3, 0x7000}}));
}

TEST(NativeStarts, the_cframe_that_is_at_its_innermost_frame_is_the_anchor_of_an_evaluation) {
  // The innermost is at no frame of this chain: it has just been entered. So is one that greenlet put there.
  StartsOf stack(11);
  stack.cframe(2, 0x99, StartsOf::at(6)).cframe(6, 0xa0, StartsOf::at(10));
  stack.cframe(10, 0x77, StartsOf::at(14)).cframe(14, 0xb0, kState + 8);
  EXPECT_EQ(stack.found({{0xa0, 1}, {0xb0, 3}}, 3), (Found{{0, StartsOf::at(14)}, {2, StartsOf::at(6)}}));
}

TEST(NativeStarts, a_cframe_beyond_what_was_copied_leaves_its_evaluation_without_an_anchor) {
  StartsOf stack(11);
  stack.cframe(2, 0xa0, kStack + 64 * 8);
  EXPECT_EQ(stack.found({{0xa0, 1}, {0xb0, 3}}, 3), (Found{{0, 0}, {2, StartsOf::at(2)}}));
}

TEST(NativeStarts, before_3_11_every_frame_is_an_evaluation_and_cframes_count_from_the_root) {
  StartsOf stack(10);
  stack.cframe(2, 0, StartsOf::at(6)).cframe(6, 0, StartsOf::at(10)).cframe(10, 0, kState + 8);
  EXPECT_EQ(stack.found({}, 2), (Found{{0, StartsOf::at(10)}, {1, StartsOf::at(6)}}));
  EXPECT_EQ(stack.found({}, 3, 1), (Found{{1, 0}, {2, 0}})) << "how many are left out is not known";
  EXPECT_EQ(StartsOf(8).found({}, 2), (Found{{0, 0}, {1, 0}}));
}

TEST(NativeStarts, what_begins_between_the_ends_of_a_deep_stack_has_no_place) {
  constexpr size_t kHalf = KERNEL_MAX_FRAMES / 2, kAll = KERNEL_MAX_FRAMES + 1;
  const Starts starts{
      {0x7000, 1}, {0x8000, kHalf}, {0x9000, kHalf + 3}, {0xa000, kHalf + 4}, {0xb000, 2 * kHalf + 3}};
  EXPECT_EQ(StartsOf(12).found(starts, kAll, 0, 3),
            (Found{{0, 0xb000}, {kHalf - 1, 0xa000}, {kHalf + 1, 0x8000}, {kAll - 1, 0x7000}}));
  StartsOf objects(10);
  objects.cframe(2, 0, StartsOf::at(6)).cframe(6, 0, kState + 8);
  const Found found = objects.found({}, kAll, 0, 3);
  ASSERT_EQ(found.size(), size_t{KERNEL_MAX_FRAMES});
  EXPECT_EQ(found[0], (Found::value_type{0, StartsOf::at(6)}));
  EXPECT_EQ(found[kHalf - 1].first, kHalf - 1);
  EXPECT_EQ(found[kHalf].first, kHalf + 1);
}

TEST(NativeStarts, cframes_in_a_circle_come_to_an_end) {
  StartsOf stack(10);
  stack.cframe(2, 0, StartsOf::at(2));
  EXPECT_EQ(stack.found({}, 1), (Found{{0, 0}}));
}

kernel_native half_at(uint64_t time, bool away) {
  kernel_native half{};
  half.thread = kThread;
  half.time = time;
  half.away = away;
  half.sp = half.stack_start = kStack;
  return half;
}

class NativeHalvesTest : public testing::Test {
 protected:
  void take(uint64_t time, bool away, uint64_t keep = 0) {
    kernel_native half = half_at(time, away);
    half.keep = keep;
    const auto bytes =
        test::kernel_native_bytes(half, std::vector<uint64_t>{1}, {}, std::vector<uint64_t>{2, 3});
    halves_.take(std::get<KernelNative>(parse_kernel_record(bytes)));
  }
  bool has(uint64_t time, bool away) {
    kernel_sample sample = test::kernel_sample_of(kThread, {});
    sample.native = time;
    sample.off_since = away ? time : 0;
    const auto parts = halves_.parts(layout_of(13), sample, {});
    EXPECT_EQ(parts.stack.size(), parts.head.empty() ? 0U : 16U);
    return !parts.head.empty();
  }
  NativeHalves halves_;
};

TEST_F(NativeHalvesTest, a_sample_has_the_half_that_it_names_and_no_other) {
  take(100, false);
  EXPECT_TRUE(has(100, false));
  EXPECT_FALSE(has(101, false));
  EXPECT_FALSE(has(0, false));
  EXPECT_FALSE(has(100, true));
}

TEST_F(NativeHalvesTest, what_a_thread_left_its_cpu_with_stays_while_the_clock_finds_it) {
  take(100, true);
  take(200, false);
  EXPECT_TRUE(has(100, true));
  take(300, true);
  EXPECT_FALSE(has(100, true));
  halves_.forget(kThread);
  EXPECT_FALSE(has(200, false));
}

TEST_F(NativeHalvesTest, one_that_is_named_on_stays_while_others_come) {
  take(100, true);
  take(200, true, 100);
  take(300, true, 100);
  EXPECT_TRUE(has(100, true));
  EXPECT_FALSE(has(200, true));
  EXPECT_TRUE(has(300, true));
  take(400, true, 300);
  EXPECT_FALSE(has(100, true));
  EXPECT_TRUE(has(300, true));
}

// Which native part goes out with each sample.
class NativeSamples : public testing::Test {
 protected:
  void sample(uint64_t ms, uint64_t ran, uint64_t blocked, uint64_t off, uint64_t native) {
    kernel_sample sample = test::kernel_sample_of(kThread, {});
    sample.stack.end = KERNEL_END_NO_STATE;
    sample.time = start_ + ms * kMillisecond;
    sample.ran = ran * kMillisecond;
    sample.blocked = blocked * kMillisecond;
    sample.off_since = off == 0 ? 0 : start_ + off * kMillisecond;
    sample.native = native;
    source_.take(std::get<KernelSample>(parse_kernel_record(test::kernel_bytes(sample, {}))));
  }
  void half(uint64_t time, bool away) {
    const auto bytes = test::kernel_native_bytes(half_at(time, away), {}, {}, std::vector<uint64_t>{2, 3});
    source_.take(std::get<KernelNative>(parse_kernel_record(bytes)));
  }
  std::vector<std::pair<NativePart, NativePlace>> sent() {
    std::vector<std::pair<NativePart, NativePlace>> all;
    for (auto bytes = ring_.front(); bytes.data() != nullptr; ring_.pop(), bytes = ring_.front()) {
      ThreadSample record;
      if (bytes.size() < sizeof record) continue;
      std::memcpy(&record, bytes.data(), sizeof record);
      if (record.kind == RecordKind::sample) all.emplace_back(record.native.part, record.native.place);
    }
    return all;
  }

  static constexpr uint64_t kMillisecond = 1'000'000;
  test::FakeInterpreter fake_{layout_of(13)};
  python::Interpreter python_ = fake_.interpreter();
  Ring ring_{size_t{1} << 20};
  KernelSource source_{python_, fake_.memory(), ring_, true, [] {}};
  uint64_t start_ = static_cast<uint64_t>(clock_now());
};

TEST_F(NativeSamples, a_half_goes_once_and_is_kept_for_the_time_before_later_samples) {
  half(11, false);
  sample(1, 0, 0, 0, 11);
  // Ran on until 4, and slept until 24.
  half(12, true);
  sample(24, 3, 20, 4, 12);
  EXPECT_EQ(sent(),
            (std::vector<std::pair<NativePart, NativePlace>>{{NativePart::fresh, NativePlace::awake},
                                                             {NativePart::kept, NativePlace::awake},
                                                             {NativePart::fresh, NativePlace::asleep}}));
  // Slept some more in the same place before it was found running: without a half of its own.
  sample(34, 4, 29, 0, 0);
  EXPECT_EQ(sent(), (std::vector<std::pair<NativePart, NativePlace>>{{NativePart::kept, NativePlace::asleep},
                                                                     {NativePart::none, NativePlace::none}}));
}

}  // namespace
}  // namespace phlox::sampler
