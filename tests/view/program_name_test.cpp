#include "phlox/view/program_name.h"

#include <gtest/gtest.h>

namespace phlox::view {

using namespace profile;

namespace {

std::string name_of(const std::string& command_line, int32_t pid = 4711) {
  Process process;
  process.pid = process.namespace_pid = pid;
  process.executable = "/usr/bin/python3.12";
  process.command_line = command_line;
  return program_name(process);
}

TEST(ProgramName, brothers_are_called_the_same) {
  for (const auto& [one, other] : {
           std::pair{"python -c from multiprocessing.spawn import spawn_main; spawn_main(tracker_fd=5, "
                     "pipe_handle=7) --multiprocessing-fork",
                     "python -c from multiprocessing.spawn import spawn_main; spawn_main(tracker_fd=5, "
                     "pipe_handle=21) --multiprocessing-fork"},
           std::pair{"python -m joblib.externals.loky.backend.popen_loky_posix --process-name LokyProcess-1 "
                     "--pipe 17",
                     "python -m joblib.externals.loky.backend.popen_loky_posix --process-name LokyProcess-12 "
                     "--pipe 24"},
           std::pair{"app: worker 4711", "app: worker 4711"},
       }) {
    EXPECT_EQ(name_of(one), name_of(other));
    EXPECT_NE(name_of(one).find('*'), std::string::npos) << name_of(one);
  }
  EXPECT_EQ(name_of("app: worker 4711", 4711), name_of("app: worker 4712", 4712));
}

TEST(ProgramName, what_was_typed_stays) {
  EXPECT_EQ(name_of("python3.12 app.py --port 8001"), "python3.12 app.py --port 8001");
  EXPECT_EQ(name_of("python3 app4711.py", 4711), "python3 app4711.py");
  EXPECT_EQ(name_of("python3 app.py -j 7", 7), "python3 app.py -j 7");
  EXPECT_EQ(name_of(""), "/usr/bin/python3.12");
}

}  // namespace
}  // namespace phlox::view
