#include "phlox/view/gil_holders.h"

#include <gtest/gtest.h>

#include <chrono>
#include <map>
#include <string>
#include <vector>

#include "phlox/view/frame_labels.h"
#include "support/cases.h"
#include "support/profile_of.h"

namespace phlox::view {

using namespace profile;

namespace {

using test::ProfileMaker;

constexpr Nanoseconds kMs = 1'000'000;

class GilHolders : public testing::Test {
 protected:
  // From this millisecond on.
  void put(ThreadId thread, const std::string& frames, Nanoseconds at, Nanoseconds wall, GilState gil) {
    Sample sample = maker.sample(thread, frames, wall * kMs);
    sample.start = ProfileMaker::kStart + at * kMs;
    sample.gil_state = gil;
    if (gil == GilState::waits) sample.cpu_state = CpuState::blocked;
    maker.put(sample);
  }
  void holds(ThreadId thread, const std::string& frames, Nanoseconds at, Nanoseconds wall) {
    put(thread, frames, at, wall, GilState::holds);
  }
  void waits(ThreadId thread, const std::string& frames, Nanoseconds at, Nanoseconds wall) {
    put(thread, frames, at, wall, GilState::waits);
  }
  std::vector<GilWaiter> waiters(const Choices& choices = {}) {
    const auto filter = SampleFilter::make(profile, choices);
    return filter ? gil_waiters(profile, *filter) : std::vector<GilWaiter>();
  }
  // "a crunch:30 6": thread, function and line, milliseconds.
  std::string words(const std::vector<GilPlace>& places) {
    std::string words;
    for (const GilPlace& place : places) {
      words += (words.empty() ? "" : ", ") + profile.thread(place.thread).name;
      if (place.frame)
        words +=
            " " + profile.frame(place.frame).function + ":" + std::to_string(profile.frame(place.frame).line);
      words += " " + std::to_string(place.wall / kMs);
    }
    return words;
  }

  Profile profile;
  ProfileMaker maker{profile};
};

TEST_F(GilHolders, a_holder_whose_function_was_not_read_is_not_named_by_its_caller) {
  const ThreadId a = maker.thread("a"), b = maker.thread("b");
  waits(a, "run;want:7", 0, 10);
  holds(b, "run;crunch:30", 0, 10);
  Frame unread = profile.frame(profile.stack(profile.samples().back().stack).frame);
  unread.kind = FrameKind::marker;
  unread.function = "(a code object that cannot be read)";
  unread.line = 0;
  profile.emit(profile.stack(profile.samples().back().stack).frame, unread);
  EXPECT_EQ(words(waiters()[0].holders), "b (a code object that cannot be read):0 10");
}

TEST_F(GilHolders, a_wait_is_divided_among_the_holders) {
  const ThreadId a = maker.thread("a"), b = maker.thread("b"), c = maker.thread("c");
  waits(a, "run;want:7", 0, 10);
  holds(b, "run;crunch:30", 0, 6);
  holds(c, "run;parse:40", 6, 3);
  const auto found = waiters();
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].wall, 10 * kMs);
  EXPECT_EQ(found[0].unseen, 1 * kMs);
  EXPECT_EQ(words(found[0].places), "a want:7 10");
  EXPECT_EQ(words(found[0].holders), "b crunch:30 6, c parse:40 3");
}

TEST_F(GilHolders, two_lines_of_one_thread_are_two_holders_and_one_thread) {
  const ThreadId a = maker.thread("a"), b = maker.thread("b");
  waits(a, "want:7", 0, 4);
  waits(a, "want:8", 6, 4);
  holds(b, "crunch:30", 0, 2);
  holds(b, "crunch:31", 2, 8);
  const auto found = waiters();
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(words(found[0].places), "a want:7 4, a want:8 4");
  EXPECT_EQ(words(found[0].holders), "b crunch:31 6, b crunch:30 2");
  EXPECT_EQ(words(found[0].threads), "b 8");
  EXPECT_EQ(found[0].unseen, 0);
}

// Each sample covers the time since the one before it.
TEST_F(GilHolders, of_two_at_once_the_one_sampled_first_counts) {
  const ThreadId a = maker.thread("a"), b = maker.thread("b"), c = maker.thread("c");
  waits(a, "want:7", 0, 10);
  holds(b, "crunch:30", 0, 6);
  holds(c, "parse:40", 2, 8);
  const auto found = waiters();
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(words(found[0].holders), "b crunch:30 6, c parse:40 4");
}

TEST_F(GilHolders, a_short_one_within_a_long_one_has_its_time) {
  const ThreadId a = maker.thread("a"), b = maker.thread("b"), c = maker.thread("c");
  waits(a, "want:7", 0, 10);
  holds(b, "crunch:30", 0, 10);
  holds(c, "parse:40", 4, 2);
  EXPECT_EQ(words(waiters()[0].holders), "b crunch:30 8, c parse:40 2");
}

TEST_F(GilHolders, each_interpreter_has_its_own) {
  const ThreadId a = maker.thread("a"), b = maker.thread("b"), c = maker.thread("c"), d = maker.thread("d");
  Thread other = profile.thread(c);
  other.interpreter = 1;
  profile.emit(c, other);
  Process process = profile.process(ProcessId(1));
  profile.emit(ProcessId(2), process);
  Thread elsewhere = profile.thread(d);
  elsewhere.process = ProcessId(2);
  profile.emit(d, elsewhere);
  waits(a, "want:7", 0, 10);
  holds(b, "crunch:30", 0, 2);
  holds(c, "parse:40", 2, 8);
  holds(d, "parse:40", 2, 8);
  const auto found = waiters();
  EXPECT_EQ(words(found[0].holders), "b crunch:30 2");
  EXPECT_EQ(found[0].unseen, 8 * kMs);
}

TEST_F(GilHolders, the_choices_are_about_the_waiter) {
  const ThreadId a = maker.thread("a"), b = maker.thread("b");
  waits(a, "want:7", 0, 10);
  holds(b, "crunch:30", 0, 10);
  Choices choices;
  choices.thread_regex = "^a$";
  EXPECT_EQ(words(waiters(choices)[0].holders), "b crunch:30 10");
  choices.states = static_cast<uint8_t>(StateChoice::gil_waits);
  choices.from = 4 * kMs;
  choices.to = 6 * kMs;
  const auto part = waiters(choices);
  EXPECT_EQ(part[0].wall, 2 * kMs);
  EXPECT_EQ(words(part[0].holders), "b crunch:30 2");
  choices.thread_regex = "b";
  EXPECT_TRUE(waiters(choices).empty());
}

TEST_F(GilHolders, a_native_leaf_is_named_by_the_line_that_called_it) {
  const ThreadId a = maker.thread("a"), b = maker.thread("b");
  waits(a, "want:7;(a marker)", 0, 10);
  holds(b, "crunch:30;(a marker)", 0, 10);
  EXPECT_EQ(words(waiters()[0].places), "a want:7 10");
  EXPECT_EQ(words(waiters()[0].holders), "b crunch:30 10");
}

// Woken, and not on a CPU yet: the one before has let go of it.
TEST_F(GilHolders, a_waiter_in_the_queue_for_a_cpu_finds_it_free) {
  const ThreadId a = maker.thread("a"), b = maker.thread("b");
  waits(a, "want:7", 0, 6);
  Sample woken = maker.sample(a, "want:7", 4 * kMs);
  woken.start = ProfileMaker::kStart + 6 * kMs;
  woken.gil_state = GilState::waits;
  woken.cpu_state = CpuState::runnable;
  maker.put(woken);
  holds(b, "crunch:30", 0, 5);
  const auto found = waiters();
  EXPECT_EQ(found[0].wall, 10 * kMs);
  EXPECT_EQ(found[0].unseen, 5 * kMs);
  EXPECT_EQ(found[0].free, 4 * kMs);
}

TEST_F(GilHolders, the_longest_waits_come_first) {
  const ThreadId a = maker.thread("a"), b = maker.thread("b"), c = maker.thread("c");
  waits(a, "want:7", 0, 3);
  waits(b, "want:8", 0, 5);
  holds(c, "crunch:30", 0, 10);
  const auto found = waiters();
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(words(found[0].places), "b want:8 5");
  EXPECT_EQ(words(found[1].holders), "c crunch:30 3");
}

// The page is held to the same cases (web/test/twins_test.ts).
TEST(GilHoldersTwin, is_that_of_the_common_cases) {
  const auto document = test::common_cases("gil_holders");
  ASSERT_TRUE(document.IsObject());
  for (const auto& row : document["cases"].GetArray()) {
    Profile profile;
    ProfileMaker maker(profile);
    profile.emit(ProcessId(2), profile.process(ProcessId(1)));
    std::vector<ThreadId> threads;
    for (const char* name : {"0", "1", "2", "3"}) {
      threads.push_back(maker.thread(name));
      Thread thread = profile.thread(threads.back());
      thread.process = ProcessId(threads.size() <= 2 ? 1 : 2);
      profile.emit(threads.back(), thread);
    }
    const auto put = [&](const auto& spans, GilState gil) {
      for (const auto& span : spans.GetArray()) {
        Sample sample = maker.sample(threads[span[0].GetUint()], span[1].GetString(), span[3].GetInt() * kMs);
        sample.start = ProfileMaker::kStart + span[2].GetInt() * kMs;
        sample.gil_state = gil;
        if (gil == GilState::waits) sample.cpu_state = CpuState::blocked;
        maker.put(sample);
      }
    };
    put(row["holds"], GilState::holds);
    put(row["waits"], GilState::waits);
    const auto filter = SampleFilter::make(profile, {});
    ASSERT_TRUE(filter);
    const auto waiters = gil_waiters(profile, *filter);
    ASSERT_EQ(waiters.size(), 1U) << row["name"].GetString();
    EXPECT_EQ(waiters[0].unseen / kMs, row["unseen"].GetInt()) << row["name"].GetString();
    std::map<std::string, int64_t> held, expected;
    for (const GilPlace& place : waiters[0].holders) {
      const Frame& frame = profile.frame(place.frame);
      held[profile.thread(place.thread).name + " " + frame.function + ":" + std::to_string(frame.line)] =
          place.wall / kMs;
    }
    for (const auto& [place, time] : row["held"].GetObject()) expected[place.GetString()] = time.GetInt64();
    EXPECT_EQ(held, expected) << row["name"].GetString();
  }
}

// A thousand threads, a hundred holders a wait: twenty million pairs would be minutes by a walk per waiter.
TEST_F(GilHolders, many_threads_are_no_walk_per_waiter) {
  const ThreadId holder = maker.thread("holder");
  for (int i = 0; i < 20'000; ++i) holds(holder, "crunch:" + std::to_string(i % 50 + 1), i, 1);
  for (int thread = 0; thread < 1000; ++thread) {
    const ThreadId waiter = maker.thread("waiter");
    for (int i = 0; i < 200; ++i) waits(waiter, "want:7", i * 100, 100);
  }
  const auto begin = std::chrono::steady_clock::now();
  const auto found = waiters();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(10));
  ASSERT_EQ(found.size(), 1000U);
  EXPECT_EQ(found[0].unseen, 0);
  EXPECT_EQ(found[0].holders.size(), 50U);
}

}  // namespace
}  // namespace phlox::view
