#include "phlox/view/process_names.h"

#include <gtest/gtest.h>

#include "phlox/view/program_name.h"
#include "support/profile_of.h"

namespace phlox::view {

using namespace profile;

namespace {

TEST(ProcessNames, follow_the_command_line) {
  Profile profile;
  test::ProfileMaker maker(profile);
  maker.process(4712);
  profile.emit_meta("process_name.2", "ForkPoolWorker-1");
  profile.emit_meta("process_rank.2", "RANK 3");
  show_process_names(profile);
  EXPECT_EQ(profile.process(ProcessId(1)).command_line, "python3 app.py");
  EXPECT_EQ(profile.process(ProcessId(2)).command_line, "python3 worker.py · ForkPoolWorker-1 · RANK 3");
}

TEST(ProcessNames, are_not_said_twice) {
  Profile profile;
  test::ProfileMaker maker(profile);
  profile.emit_meta("process_name.1", "app.py");
  show_process_names(profile);
  EXPECT_EQ(profile.process(ProcessId(1)).command_line, "python3 app.py");
}

TEST(ProcessNames, do_not_make_another_program) {
  Profile profile;
  test::ProfileMaker maker(profile);
  profile.emit_meta("process_name.1", "ForkPoolWorker-1");
  show_process_names(profile);
  EXPECT_EQ(program_name(profile.process(ProcessId(1))), "python3 app.py");
}

}  // namespace
}  // namespace phlox::view
