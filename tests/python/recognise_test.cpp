#include "phlox/python/recognise.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "support/pythons.h"

namespace phlox::python {
namespace {

// A program that runs until the end of the scope.
class Running {
 public:
  Running(const std::string& file, const std::vector<std::string>& words) : pid_(::fork()) {
    if (pid_ == 0) {
      std::vector<char*> argv{const_cast<char*>(file.c_str())};
      for (const std::string& word : words) argv.push_back(const_cast<char*>(word.c_str()));
      argv.push_back(nullptr);
      ::execv(file.c_str(), argv.data());
      ::_exit(127);
    }
    // Until its libraries are there.
    for (int tries = 0; tries < 1000 && !(executable_of(pid_) == file && has_libc()); ++tries)
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  ~Running() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  pid_t pid() const { return pid_; }

 private:
  bool has_libc() const {
    const auto maps = process::read_maps(pid_);
    return maps && std::any_of(maps->begin(), maps->end(),
                               [](const auto& m) { return m.path.find("/libc.so") != std::string::npos; });
  }
  pid_t pid_;
};

std::string copy_of(const std::string& program, const std::string& to) {
  std::ifstream from(program, std::ios::binary);
  std::ofstream(to, std::ios::binary | std::ios::trunc) << from.rdbuf();
  std::filesystem::permissions(to, std::filesystem::perms::owner_all);
  return to;
}

class RecogniserTest : public testing::Test {
 protected:
  void SetUp() override { folder_ = std::filesystem::canonical(::mkdtemp(name_)).string(); }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  char name_[32] = "/tmp/phlox_recognise_XXXXXX";
  std::string folder_;
};

TEST_F(RecogniserTest, an_executable_that_is_replaced_in_place_is_read_again) {
  Recogniser recogniser;
  const std::string program = copy_of("/bin/sleep", folder_ + "/program");
  {
    const Running sleep(program, {"100"});
    EXPECT_EQ(recogniser.judge(sleep.pid()), Recogniser::Verdict::no);
    EXPECT_EQ(recogniser.judge(sleep.pid()), Recogniser::Verdict::no);
  }
  struct stat before {
  }, after{};
  ASSERT_EQ(::stat(program.c_str(), &before), 0);
  const test::Python& other = test::pythons().front();
  const std::string prefix = test::run_python(other, {"-c", "import sys; sys.stdout.write(sys.prefix)"});
  copy_of(std::filesystem::canonical(other.path), program);
  ASSERT_EQ(::stat(program.c_str(), &after), 0);
  EXPECT_EQ(before.st_ino, after.st_ino);
  ::setenv("PYTHONHOME", prefix.c_str(), 1);
  const Running python(program, {"-c", "import time; time.sleep(100)"});
  ::unsetenv("PYTHONHOME");
  EXPECT_EQ(recogniser.judge(python.pid()), Recogniser::Verdict::python);
}

}  // namespace
}  // namespace phlox::python
