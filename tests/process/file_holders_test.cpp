#include "phlox/process/file_holders.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>

#include "phlox/base/descriptor.h"

namespace phlox::process {
namespace {

std::string link_of(int descriptor) {
  char link[64];
  const ssize_t size = ::readlink(("/proc/self/fd/" + std::to_string(descriptor)).c_str(), link, sizeof link);
  return {link, static_cast<size_t>(std::max<ssize_t>(size, 0))};
}

// A child that has closed all but one descriptor, and waits until we close the other end of `until`.
class Child {
 public:
  explicit Child(std::initializer_list<int> closes) {
    std::array<int, 2> until{}, ready{};
    EXPECT_EQ(::pipe2(until.data(), O_CLOEXEC), 0);
    EXPECT_EQ(::pipe2(ready.data(), O_CLOEXEC), 0);
    pid_ = ::fork();
    if (pid_ == 0) {
      for (const int one : closes) ::close(one);
      ::close(until[1]);
      char byte = 0;
      (void)!::write(ready[1], &byte, 1);
      (void)!::read(until[0], &byte, 1);
      ::_exit(0);
    }
    ::close(until[0]);
    ::close(ready[1]);
    until_ = Descriptor(until[1]);
    char byte = 0;
    EXPECT_EQ(::read(ready[0], &byte, 1), 1);
    ::close(ready[0]);
  }
  ~Child() {
    until_ = Descriptor();
    ::waitpid(pid_, nullptr, 0);
  }
  pid_t pid() const { return pid_; }

 private:
  pid_t pid_ = -1;
  Descriptor until_;
};

TEST(FileHolders, of_a_pipe_say_which_child_has_the_other_end) {
  std::array<int, 2> pipe{};
  ASSERT_EQ(::pipe2(pipe.data(), O_CLOEXEC), 0);
  const Descriptor reads(pipe[0]), writes(pipe[1]);
  const Child writer({pipe[0]}), reader({pipe[1]});
  FileHolders holders;
  const std::string link = link_of(pipe[0]);
  EXPECT_EQ(holders.find(::getpid(), link, FileHolders::End::writing), std::vector<pid_t>{writer.pid()});
  EXPECT_EQ(holders.find(::getpid(), link, FileHolders::End::reading), std::vector<pid_t>{reader.pid()});
  EXPECT_EQ(holders.find(::getpid(), "pipe:[1]", FileHolders::End::any), std::vector<pid_t>{});
  // And the child's own: who started it, and that one's other child.
  EXPECT_EQ(holders.find(writer.pid(), link, FileHolders::End::reading),
            (std::vector<pid_t>{reader.pid(), ::getpid()}));
}

TEST(FileHolders, of_a_pair_of_sockets_name_the_holder_of_the_other) {
  std::array<int, 2> pair{};
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair.data()), 0);
  const Descriptor ours(pair[0]), theirs(pair[1]);
  const Child child({pair[0]});
  FileHolders holders;
  EXPECT_EQ(holders.find(::getpid(), link_of(pair[1]), FileHolders::End::any),
            std::vector<pid_t>{child.pid()});
}

TEST(ProcessWords, are_its_command_and_number) {
  const std::string words = process_words(::getpid());
  EXPECT_NE(words.find("process_tests"), std::string::npos) << words;
  EXPECT_TRUE(words.ends_with("(" + std::to_string(::getpid()) + ")")) << words;
  EXPECT_EQ(process_words(0), "");
}

}  // namespace
}  // namespace phlox::process
