#include "phlox/memory/living_thread.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "phlox/memory/process_memory.h"

namespace phlox::memory {
namespace {

// A child whose first thread ends while another goes on.
class Headless {
 public:
  Headless() : pid_(::fork()) {
    if (pid_ != 0) return;
    ::alarm(60);
    pthread_t other{};
    ::pthread_create(
        &other, nullptr,
        [](void*) -> void* {
          for (;;) ::pause();
        },
        nullptr);
    ::syscall(SYS_exit, 0);  // of this thread alone, and without unwinding the test
  }
  ~Headless() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  // Once its first thread has ended.
  pid_t pid() const {
    for (int i = 0; i < 1000 && living_thread(pid_) == pid_; ++i) ::usleep(10'000);
    return pid_;
  }

 private:
  pid_t pid_;
};

TEST(LivingThread, a_process_as_most_are_is_its_first_thread) {
  EXPECT_EQ(living_thread(::getpid()), ::getpid());
  EXPECT_EQ(proc_folder(::getpid()), "/proc/" + std::to_string(::getpid()));
}

TEST(LivingThread, another_one_where_the_first_has_ended) {
  const Headless child;
  const pid_t pid = child.pid(), living = living_thread(pid);
  ASSERT_NE(living, pid);
  EXPECT_EQ(proc_folder(pid), "/proc/" + std::to_string(pid) + "/task/" + std::to_string(living));
  EXPECT_EQ(::access((proc_folder(pid) + "/exe").c_str(), R_OK), 0);
}

TEST(LivingThread, the_memory_is_read_where_the_first_has_ended) {
  static const uint64_t word = 0x1234'5678'9abc'def0;
  const Headless child;
  ProcessMemory memory(child.pid());
  uint64_t read = 0;
  ASSERT_TRUE(memory.read_value(RemoteAddress(reinterpret_cast<uint64_t>(&word)), read));
  EXPECT_EQ(read, word);
}

TEST(LivingThread, of_a_process_that_has_ended_there_is_none) {
  const pid_t pid = ::fork();
  if (pid == 0) ::_exit(0);
  siginfo_t info{};
  ::waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOWAIT);
  EXPECT_EQ(living_thread(pid), pid);
  ProcessMemory memory(pid);
  uint64_t read = 0;
  EXPECT_FALSE(memory.read_value(RemoteAddress(reinterpret_cast<uint64_t>(&info)), read));
  ::waitpid(pid, nullptr, 0);
  EXPECT_EQ(living_thread(pid), pid);
}

}  // namespace
}  // namespace phlox::memory
