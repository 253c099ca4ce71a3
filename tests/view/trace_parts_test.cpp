#include "phlox/view/trace_parts.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "phlox/view/await_time.h"
#include "phlox/view/part.h"
#include "support/profile_of.h"

namespace phlox::view {

using namespace profile;

namespace {

class TracePartsTest : public testing::Test {
 protected:
  void add(ThreadId thread, Nanoseconds start, Nanoseconds end) {
    profile_.emit(TraceTimeId(static_cast<uint32_t>(profile_.trace_times().size() + 1)),
                  TraceTime{thread, {}, start, end});
  }
  // "0-5:- 5-10:1", counted from 1.
  std::string pieces(ThreadId thread, Nanoseconds start, Nanoseconds wall) {
    std::string text;
    TraceParts(profile_).each(thread, start, wall, [&](Nanoseconds from, Nanoseconds to, uint32_t index) {
      text += (text.empty() ? "" : " ") + std::to_string(from) + "-" + std::to_string(to) + ":" +
              (index == TraceParts::kNone ? "-" : std::to_string(index + 1));
    });
    return text;
  }

  Profile profile_;
  test::ProfileMaker make_{profile_};
  ThreadId first_ = make_.thread("a"), second_ = make_.thread("b"), third_ = make_.thread("c");
};

TEST_F(TracePartsTest, a_time_is_divided_where_spans_begin_and_end) {
  add(second_, 10, 20);
  add(second_, 20, 25);
  add(second_, 40, 50);
  EXPECT_EQ(pieces(second_, 0, 60), "0-10:- 10-20:1 20-25:2 25-40:- 40-50:3 50-60:-");
  EXPECT_EQ(pieces(second_, 10, 10), "10-20:1");
  EXPECT_EQ(pieces(second_, 12, 3), "12-15:1");
  EXPECT_EQ(pieces(second_, 19, 2), "19-20:1 20-21:2");
  EXPECT_EQ(pieces(second_, 25, 15), "25-40:-");
  EXPECT_EQ(pieces(second_, 60, 5), "60-65:-");
  for (const ThreadId thread : {first_, third_, ThreadId(), ThreadId(9)})
    EXPECT_EQ(pieces(thread, 0, 60), "0-60:-");
}

TEST_F(TracePartsTest, a_moment_has_one) {
  add(first_, 10, 20);
  add(third_, 20, 25);
  const TraceParts parts(profile_);
  EXPECT_EQ(parts.at(first_, 9), TraceParts::kNone);
  EXPECT_EQ(parts.at(first_, 10), 0u);
  EXPECT_EQ(parts.at(first_, 19), 0u);
  EXPECT_EQ(parts.at(first_, 20), TraceParts::kNone);
  EXPECT_EQ(parts.at(third_, 20), 1u);
  EXPECT_EQ(parts.at(ThreadId(9), 20), TraceParts::kNone);
  EXPECT_EQ(pieces(first_, 10, 0), "10-10:1");
  EXPECT_EQ(pieces(first_, 20, 0), "20-20:-");
}

TEST_F(TracePartsTest, a_boundary_within_a_microsecond_of_an_end_is_there) {
  add(first_, 100'000, 200'000);
  add(first_, 200'000, 200'400);
  add(first_, 200'400, 300'000);
  EXPECT_EQ(pieces(first_, 100'900, 99'000), "100900-199900:1");
  EXPECT_EQ(pieces(first_, 99'100, 101'000), "99100-200100:1");
  EXPECT_EQ(pieces(first_, 80'000, 20'500), "80000-100500:-");
  EXPECT_EQ(pieces(first_, 199'500, 50'000), "199500-249500:3");
  EXPECT_EQ(pieces(first_, 150'000, 100'000), "150000-200000:1 200000-200400:2 200400-250000:3");
  // As long as that itself.
  EXPECT_EQ(pieces(first_, 99'500, 1'000), "99500-100000:- 100000-100500:1");
}

TEST_F(TracePartsTest, of_times_that_overlap_the_first_counts) {
  add(first_, 40, 60);
  add(first_, 10, 50);
  add(first_, 20, 30);
  add(ThreadId(7), 1, 2);
  EXPECT_EQ(pieces(first_, 0, 70), "0-10:- 10-50:2 50-60:1 60-70:-");
}

TEST_F(TracePartsTest, the_parts_of_a_sample_add_up_to_it) {
  std::mt19937 random(39);
  for (Nanoseconds at = 0; at < 10'000; at += 1 + random() % 90) {
    const Nanoseconds end = at + 1 + random() % 60;
    add(first_, at, end);
    at = end;
  }
  const TraceParts parts(profile_);
  for (int i = 0; i < 300; ++i) {
    Sample sample;
    sample.thread = first_;
    sample.start = random() % 9'000;
    sample.wall = random() % 2'000;
    sample.cpu = random() % 2'000;
    sample.samples = static_cast<uint32_t>(random() % 40);
    sample.value = (int64_t{1} << 61) + 1;
    sample.waker = WakerId(1);
    Sample sum;
    sum.samples = 0;
    Nanoseconds end = sample.start;
    WakerId last;
    parts.each_part(sample, [&](const Sample& part, uint32_t index) {
      EXPECT_EQ(part.start, end);
      EXPECT_EQ(parts.at(first_, part.start), index);
      end = part.start + part.wall;
      sum.wall += part.wall;
      sum.cpu += part.cpu;
      sum.samples += part.samples;
      sum.value += part.value;
      EXPECT_FALSE(last);
      last = part.waker;
    });
    EXPECT_EQ(end, sample.start + sample.wall);
    EXPECT_EQ(sum.wall, sample.wall);
    EXPECT_EQ(sum.cpu, sample.cpu);
    EXPECT_EQ(sum.samples, sample.samples);
    EXPECT_EQ(sum.value, sample.value);
    EXPECT_EQ(last, sample.waker);
  }
}

TEST_F(TracePartsTest, what_tasks_await_has_no_moment) {
  add(first_, 10, 20);
  Sample sample = make_.sample(first_, "main", 15);
  sample.start = 0;
  sample.system_call = kTasksAwait;
  std::vector<Nanoseconds> parts;
  TraceParts(profile_).each_part(sample, [&](const Sample& part, uint32_t index) {
    EXPECT_EQ(index, TraceParts::kNone);
    parts.push_back(part.wall);
  });
  EXPECT_EQ(parts, std::vector<Nanoseconds>{15});
}

TEST_F(TracePartsTest, each_process_has_the_times_of_its_threads) {
  const ThreadId other = make_.thread("d", 5, make_.process(72));
  make_.add(first_, "main", 10);
  make_.add(other, "main", 10);
  add(other, 10, 20);
  add(first_, 30, 40);
  add(third_, 50, 60);
  const auto parts = by_process(profile_);
  ASSERT_EQ(parts.size(), 2u);
  ASSERT_EQ(parts[0].trace_times().size(), 2u);
  EXPECT_EQ(parts[0].thread(parts[0].trace_times()[0].thread).name, "a");
  ASSERT_EQ(parts[1].trace_times().size(), 1u);
  EXPECT_EQ(parts[1].thread(parts[1].trace_times()[0].thread).name, "d");
  EXPECT_EQ(parts[1].trace_times()[0].start, 10);
}

}  // namespace
}  // namespace phlox::view
