#include "phlox/profile/descendants.h"

#include <gtest/gtest.h>

namespace phlox::profile {
namespace {

TEST(Descendants, come_back_as_they_were_put_the_busiest_first) {
  Profile profile;
  const Descendant shell{4712, 4711, 10, 20, 5, false, "sh -c a\tb"},
      compiler{4713, 4712, 11, 12, 9, true, "cc1"};
  put_descendants(profile, {shell, compiler});
  EXPECT_EQ(descendants(profile), (std::vector{compiler, shell}));
}

TEST(Descendants, a_row_that_makes_no_sense_is_left_out) {
  Profile profile;
  profile.emit_meta("descendant.1", "1\t2\t3");
  profile.emit_meta("descendant.2", "1\t2\t3\t4\t-5\t0\tx");
  profile.emit_meta("descendant.3", "1\t2\t3\t4\t5\t0\tx");
  EXPECT_EQ(descendants(profile).size(), 1u);
}

TEST(Descendants, those_of_one_command_line_are_a_group) {
  const auto groups = descendant_groups(
      {{1, 9, 0, 1, 5, false, "sh"}, {2, 9, 0, 1, 8, false, "cc"}, {3, 9, 0, 1, 6, true, "sh"}});
  ASSERT_EQ(groups.size(), 2u);
  EXPECT_EQ(groups[0].command_line, "sh");
  EXPECT_EQ(groups[0].processes, 2u);
  EXPECT_EQ(groups[0].cpu, 11);
}

}  // namespace
}  // namespace phlox::profile
