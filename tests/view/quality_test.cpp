#include "phlox/view/quality.h"

#include <gtest/gtest.h>

#include "phlox/profile/counters.h"

namespace phlox::view {

using namespace profile;

namespace {

Counter of(std::string_view name, int64_t value, uint32_t process = 1) {
  return {ProcessId{process}, std::string(name), value};
}

TEST(quality, line_names_every_counted_fact) {
  QualitySummary quality;
  quality.samples = 12345;
  quality.missed = 3;
  quality.retried = 1200;
  quality.rejected = 7;
  quality.reasons = {{"moved", "moved while read", 5}, {"broken", "broken chain", 2}};
  quality.asked_rate = 200;
  quality.achieved_rate = 198.6;
  quality.modes = {"same CPU (real time)"};
  quality.elapsed = 10'000'000'000;
  quality.target_time = 21'000'000;
  quality.recorder_time = 90'000'000;
  EXPECT_EQ(quality_line(quality),
            "12,345 samples (199 Hz of 200 Hz asked), 3 missed, 1,200 retried, 7 rejected (0.057 %: 5 moved "
            "while read, 2 "
            "broken chain); read: same CPU (real time); took 0.21 % of a CPU from the target, recorder 0.9 % "
            "of a CPU");
}

TEST(quality, rate_that_was_not_requested_is_no_promise) {
  QualitySummary quality;
  quality.samples = 1000;
  quality.most_rate = 200;
  quality.achieved_rate = 131;
  quality.max_overhead = 0.02;
  quality.elapsed = 10'000'000'000;
  quality.target_time = 190'000'000;
  EXPECT_EQ(quality_line(quality).substr(0, 54), "1,000 samples (131 Hz: lowered, to take 2 % of a CPU),");
  quality.target_time = 10'000'000;  // the budget was not why
  EXPECT_EQ(quality_line(quality).substr(0, 23), "1,000 samples (131 Hz),");
  quality.achieved_rate = 199;
  quality.target_time = 190'000'000;
  EXPECT_EQ(quality_line(quality).substr(0, 23), "1,000 samples (199 Hz),");
}

TEST(quality, of_another_recorder_only_known_facts_are_reported) {
  Profile profile;
  profile.emit_meta("recorded_by", "perf 6.1.0");
  profile.emit(of(counters::kSamples, 5000));
  profile.emit(of(counters::kLost, 7));
  profile.emit(of(counters::kCut, 50));
  profile.emit(of(counters::kNative, 4000));
  profile.emit(of(counters::kNativeWhole, 3950));
  profile.emit(of(counters::kElapsed, kSecond));
  EXPECT_EQ(quality_line(summarize_quality(profile)),
            "5,000 samples, recorded by perf 6.1.0, 7 lost, 50 cut; 98.8 % of 4,000 dumped stacks whole");
}

TEST(quality, more_than_one_percent_rejected_is_a_warning) {
  QualitySummary quality;
  quality.samples = 1000;
  quality.rejected = 10;
  EXPECT_EQ(quality_warning(quality), "");
  quality.rejected = 11;
  EXPECT_EQ(quality_warning(quality).substr(0, 5), "1.1 %");
}

TEST(quality, what_is_taken_from_the_program_is_a_warning_where_it_is_felt) {
  QualitySummary quality;
  quality.elapsed = 10'000'000'000;
  quality.target_time = 900'000'000;
  EXPECT_EQ(cost_warning(quality), "");
  quality.target_time = 4'800'000'000;
  EXPECT_EQ(cost_warning(quality).substr(0, 46), "sampling took 48.0 % of a CPU from the program");
}

TEST(quality, more_than_was_allowed_is_a_warning_though_it_is_hardly_felt) {
  QualitySummary quality;
  quality.elapsed = 10 * kSecond;
  quality.modes = {std::string(kInTheKernel)};
  quality.max_overhead = 0.02;
  quality.target_time = quality.elapsed / 50;
  EXPECT_EQ(cost_warning(quality), "");
  quality.target_time = quality.elapsed / 25;
  const std::string warning = cost_warning(quality);
  EXPECT_NE(warning.find("took 4 % of a CPU from it, above the limit of 2 %"), std::string::npos) << warning;
  quality.max_overhead = 0;
  EXPECT_EQ(cost_warning(quality), "") << "nothing was asked for";
}

TEST(quality, summary_adds_counts_but_not_rates_over_processes) {
  Profile profile;
  Process process;
  process.mode = "ptrace stop";
  profile.emit(ProcessId{1}, process);
  profile.emit(ProcessId{2}, process);
  for (uint32_t id : {1U, 2U}) {
    profile.emit(of(counters::kSamples, 100, id));
    profile.emit(of(counters::kTicks, 50 * id, id));
    profile.emit(of(counters::kRejectedBroken, id, id));
    profile.emit(of(counters::kRejectedMoved, 1, id));
    profile.emit(of(counters::kAskedRate, 200'000, id));
  }
  profile.emit(of(counters::kElapsed, 2'000'000'000, 0));
  QualitySummary quality = summarize_quality(profile);
  EXPECT_EQ(quality.samples, 200);
  EXPECT_EQ(quality.rejected, 5);
  ASSERT_EQ(quality.reasons.size(), 2U);
  EXPECT_EQ(quality.reasons[0].reason, "broken chain");
  EXPECT_DOUBLE_EQ(quality.asked_rate, 200);
  EXPECT_DOUBLE_EQ(quality.achieved_rate, 50);
  EXPECT_EQ(quality.modes, std::vector<std::string>{"ptrace stop"});
}

}  // namespace
}  // namespace phlox::view
