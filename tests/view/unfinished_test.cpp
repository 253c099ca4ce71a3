#include "phlox/profile/unfinished.h"

#include <gtest/gtest.h>

#include "phlox/profile/counters.h"
#include "phlox/view/quality.h"
#include "support/profile_of.h"

namespace phlox::view {

using namespace profile;

namespace {

// Two processes, of 10 s from second 5 on and of 4 s from second 11 on, as far as is known.
Profile growing() {
  Profile profile;
  test::ProfileMaker maker(profile);
  profile.emit_meta("start_monotonic_ns", std::to_string(5 * kSecond));
  Sample sample = maker.sample(maker.thread("a"), "main", 10 * kSecond);
  sample.start = 5 * kSecond;
  maker.put(sample);
  for (uint32_t id : {1u, 2u}) {
    Process process;
    process.start = (id == 1 ? 5 : 11) * kSecond;
    profile.emit(ProcessId(id), process);
    profile.emit({ProcessId(id), std::string(counters::kTicks), id == 1 ? 1000 : 400});
  }
  return profile;
}

TEST(unfinished, says_how_far_it_goes) {
  Profile profile = growing();
  EXPECT_TRUE(unfinished_words(profile).starts_with("the recorder was killed after 10.0 s: "));
  profile.emit_meta(kGrows, "1");
  EXPECT_EQ(unfinished_words(profile), "still being recorded: 10.0 s so far");
  EXPECT_EQ(seen_until(profile), 15 * kSecond);
  profile.emit_meta("end_monotonic_ns", std::to_string(16 * kSecond));
  EXPECT_EQ(unfinished_words(profile), "");
  EXPECT_EQ(seen_until(profile), 16 * kSecond);
}

TEST(unfinished, one_of_nothing_goes_no_further_than_its_start) {
  Profile profile;
  profile.emit_meta("start_monotonic_ns", "77");
  profile.emit_meta(kGrows, "1");
  EXPECT_EQ(unfinished_words(profile), "still being recorded: 0.0 s so far");
}

TEST(unfinished, its_rate_is_that_of_each_process_so_far) {
  EXPECT_DOUBLE_EQ(summarize_quality(growing()).achieved_rate, 100);
}

TEST(NotRecorded, siblings_and_what_could_not_be_read_are_both_said) {
  Profile profile;
  EXPECT_EQ(not_recorded_words(profile), "");
  profile.emit_meta(std::string(kCouldNotBeRead),
                    "Not every Python that it started could be recorded: rights");
  profile.emit_meta(std::string(kNotRecorded), "3 more workers run");
  EXPECT_EQ(not_recorded_words(profile),
            "3 more workers run. Not every Python that it started could be recorded: rights");
}

}  // namespace
}  // namespace phlox::view
