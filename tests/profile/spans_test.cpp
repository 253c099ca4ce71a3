#include "phlox/profile/spans.h"

#include <gtest/gtest.h>

#include <vector>

#include "phlox/profile/profile.h"

namespace phlox::profile {
namespace {

constexpr Nanoseconds kTick = 1'000'000;

// The n-th tick's look: thread 1, stack 1, running.
Sample sample_at(int64_t n, StackId stack = StackId(1), ThreadId thread = ThreadId(1)) {
  Sample sample;
  sample.thread = thread;
  sample.start = n * kTick;
  sample.wall = kTick;
  sample.cpu = kTick / 2;
  sample.cpu_number = 3;
  sample.stack = stack;
  sample.cpu_state = CpuState::running;
  sample.gil_state = GilState::holds;
  return sample;
}

TEST(Spans, equal_samples_are_one_row) {
  Profile profile;
  Spans spans(profile);
  for (int i = 0; i < 10; ++i) spans.add(sample_at(i));
  spans.flush();
  ASSERT_EQ(profile.samples().size(), 1u);
  const Sample& sample = profile.samples()[0];
  EXPECT_EQ(sample.start, 0);
  EXPECT_EQ(sample.wall, 10 * kTick);
  EXPECT_EQ(sample.cpu, 5 * kTick);
  EXPECT_EQ(sample.samples, 10u);
  EXPECT_EQ(sample.cpu_number, 3);
}

TEST(Spans, each_event_has_rows_of_its_own) {
  Profile profile;
  Spans spans(profile);
  for (int i = 0; i < 10; ++i) {
    for (const uint16_t event : {uint16_t{1}, uint16_t{2}}) {
      Sample sample = sample_at(i);
      sample.event = event;
      sample.value = event;
      spans.add(sample);
    }
  }
  spans.close(ThreadId(1));
  ASSERT_EQ(profile.samples().size(), 2u);
  EXPECT_EQ(profile.samples()[0].value, 10);
  EXPECT_EQ(profile.samples()[1].value, 20);
  EXPECT_EQ(profile.samples()[1].wall, 10 * kTick);
}

TEST(Spans, every_difference_begins_another_row) {
  std::vector<Sample> samples(7, sample_at(1));
  samples[1].stack = StackId(2);
  samples[2].cpu_state = CpuState::runnable;
  samples[3].gil_state = GilState::waits;
  samples[4].collecting = true;
  samples[5].system_call = 7;
  samples[6].quality = Quality::unproved;
  for (size_t i = 0; i < samples.size(); ++i) {
    Profile profile;
    Spans spans(profile);
    spans.add(sample_at(0));
    spans.add(samples[i]);
    spans.flush();
    EXPECT_EQ(profile.samples().size(), i == 0 ? 1u : 2u) << i;
  }
}

TEST(Spans, another_cpu_is_the_same_row_and_the_last_one_is_kept) {
  Profile profile;
  Spans spans(profile);
  Sample sample = sample_at(0);
  spans.add(sample);
  sample = sample_at(1);
  sample.cpu_number = 4;
  spans.add(sample);
  sample = sample_at(2);
  sample.cpu_number = -1;
  spans.add(sample);
  spans.flush();
  ASSERT_EQ(profile.samples().size(), 1u);
  EXPECT_EQ(profile.samples()[0].cpu_number, 4);
}

TEST(Spans, no_row_is_longer_than_a_second) {
  Profile profile;
  Spans spans(profile);
  for (int i = 0; i < 2500; ++i) spans.add(sample_at(i));
  spans.flush();
  ASSERT_EQ(profile.samples().size(), 3u);
  EXPECT_EQ(profile.samples()[0].wall, kSecond);
  EXPECT_EQ(profile.samples()[2].wall, kSecond / 2);
}

TEST(Spans, time_without_a_sample_ends_a_row) {
  Profile profile;
  Spans spans(profile);
  spans.add(sample_at(0));
  spans.add(sample_at(2));
  spans.flush();
  ASSERT_EQ(profile.samples().size(), 2u);
  EXPECT_EQ(profile.samples()[1].start, 2 * kTick);
}

TEST(Spans, a_row_put_by_flush_grows_under_the_same_id) {
  Profile profile;
  Spans spans(profile);
  spans.add(sample_at(0));
  spans.flush();
  EXPECT_EQ(profile.samples()[0].wall, kTick);
  spans.add(sample_at(1));
  EXPECT_EQ(profile.samples()[0].wall, kTick);
  spans.flush();
  ASSERT_EQ(profile.samples().size(), 1u);
  EXPECT_EQ(profile.samples()[0].wall, 2 * kTick);
}

TEST(Spans, a_row_that_did_not_grow_is_not_put_again) {
  struct Count : Profile {
    int puts = 0;
    void receive(const AnyRow& row) override {
      if (const auto* sample = std::get_if<Numbered<SampleId>>(&row)) {
        ++puts;
        EXPECT_LE(sample->id.value, samples().size() + 1) << "ids count up";
      }
      Profile::receive(row);
    }
  } profile;
  Spans spans(profile);
  spans.add(sample_at(0));
  spans.add(sample_at(0, StackId(5), ThreadId(2)));
  spans.flush();
  spans.flush();
  EXPECT_EQ(profile.puts, 2);
  spans.add(sample_at(1, StackId(2)));  // closes a span that was emitted as it was
  EXPECT_EQ(profile.puts, 2);
  spans.close(ThreadId(1));
  EXPECT_EQ(profile.puts, 3);
  spans.close(ThreadId(1));
  spans.flush();
  EXPECT_EQ(profile.puts, 3);
  ASSERT_EQ(profile.samples().size(), 3u);
  EXPECT_EQ(profile.samples()[2].stack, StackId(2));
}

TEST(Spans, threads_do_not_mix_and_no_time_is_lost) {
  Profile profile;
  Spans spans(profile);
  for (int i = 0; i < 1000; ++i) {
    for (uint32_t t = 1; t <= 5; ++t) spans.add(sample_at(i, StackId(uint32_t(i) / t % 3 + 1), ThreadId(t)));
    if (i % 100 == 0) spans.flush();
  }
  spans.flush();
  Nanoseconds wall[6] = {};
  for (const Sample& sample : profile.samples()) wall[sample.thread.value] += sample.wall;
  for (uint32_t t = 1; t <= 5; ++t) EXPECT_EQ(wall[t], 1000 * kTick);
}

}  // namespace
}  // namespace phlox::profile
