#include "phlox/view/incident_causes.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>

namespace phlox::view {

using namespace profile;

namespace {

Profile recorded(const std::vector<std::pair<std::string, std::string>>& meta) {
  Profile profile;
  Event start;
  start.kind = EventKind::recording_start;
  start.time = 1000;
  profile.emit(start);
  for (const auto& [key, value] : meta) profile.emit_meta(key, value);
  return profile;
}

TEST(IncidentCauses, come_back_as_they_were_written) {
  const IncidentCause stall{4000, "stall", "a stall in f (a.py:3)", "stall of 405 ms"},
      death{9000, "death", "SIGSEGV ended process 12", "SIGSEGV"};
  const auto causes = incident_causes(recorded({meta_of(stall, 1), meta_of(death, 2)}));
  ASSERT_EQ(causes.size(), 2u);
  EXPECT_EQ(causes[0].time, 3000);
  EXPECT_EQ(causes[0].kind, "stall");
  EXPECT_EQ(causes[0].words, stall.words);
  EXPECT_EQ(causes[0].in_short, "stall of 405 ms");
  EXPECT_EQ(causes[1].time, 8000);
  EXPECT_EQ(causes[1].in_short, "SIGSEGV");
}

TEST(IncidentCauses, an_old_recording_has_no_short_words_and_others_have_no_causes) {
  const auto causes = incident_causes(recorded({{"incident.1", "2000\tcpu-wait\tthreads waited"}}));
  ASSERT_EQ(causes.size(), 1u);
  EXPECT_EQ(causes[0].words, "threads waited");
  EXPECT_EQ(causes[0].in_short, "cpu-wait");
  EXPECT_TRUE(incident_causes(recorded({})).empty());
}

TEST(IncidentCauses, what_lies_is_left_out) {
  const std::string least = std::to_string(std::numeric_limits<Nanoseconds>::min());
  const auto causes = incident_causes(recorded({{"incident.1", ""},
                                                {"incident.2", "x\tstall\twords"},
                                                {"incident.3", "5000"},
                                                {"incident.4", least + "\tstall\tlong ago"},
                                                {"incident.5", "5000\tlog\twords\tshort\tmore"}}));
  ASSERT_EQ(causes.size(), 1u);
  EXPECT_EQ(causes[0].in_short, "short");
}

}  // namespace
}  // namespace phlox::view
