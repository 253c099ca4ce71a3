#include "phlox/process/thread_stop.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <optional>

namespace phlox::process {
namespace {

// A child that computes, and counts what it computes and the signals that it gets.
class Computing {
 public:
  struct Shared {
    std::atomic<uint64_t> work{0}, signals{0};
  };

  Computing() {
    void* page = ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED) std::abort();
    shared_ = new (page) Shared;
    signal_ = SIGRTMIN;
    pid_ = ::fork();
    if (pid_ == 0) compute();
    probe_.emplace(pid_, pid_);
    until_it_works();
  }
  ~Computing() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    shared_->~Shared();
    ::munmap(shared_, sizeof(Shared));
  }
  Computing(const Computing&) = delete;
  Computing& operator=(const Computing&) = delete;

  pid_t pid() const { return pid_; }
  void send() { sent_ += ::sigqueue(pid_, signal_, {}) == 0; }
  uint64_t sent() const { return sent_; }
  uint64_t got() const { return shared_->signals; }
  void until_it_works() const {
    for (const uint64_t before = shared_->work; shared_->work == before;) ::usleep(100);
  }
  ThreadProbe& probe() { return *probe_; }
  char state() { return probe_->stat()->state; }

 private:
  static inline Shared* shared_ = nullptr;

  [[noreturn]] void compute() {
    struct sigaction action {};
    action.sa_handler = [](int) { ++shared_->signals; };
    ::sigaction(signal_, &action, nullptr);
    for (;;) ++shared_->work;
  }

  int signal_ = 0;
  pid_t pid_ = 0;
  std::optional<ThreadProbe> probe_;
  uint64_t sent_ = 0;
};

TEST(ThreadStop, stays_stopped_until_released) {
  Computing child;
  StopCounts counts;
  ThreadStop stop(child.pid(), child.probe(), counts);
  ASSERT_EQ(stop.state(), ThreadStop::State::stopped);
  EXPECT_EQ(child.state(), 't');
  UserRegisters registers;
  EXPECT_TRUE(stop.read_registers(registers));
  EXPECT_NE(registers.pc, RemoteAddress());
  constexpr Nanoseconds kStands = 3'000'000;
  ::usleep(kStands / 1000);
  stop.let_go();
  child.until_it_works();
  EXPECT_EQ(counts.stops, 1U);
  // A thread that had waited for a CPU since before counts as if it had waited for that all the while.
  for (int tries = 0; tries < 20 && counts.stood <= kStands / 2; ++tries) {
    ThreadStop again(child.pid(), child.probe(), counts);
    ::usleep(kStands / 1000);
    again.let_go();
    child.until_it_works();
  }
  EXPECT_GT(counts.stood, kStands / 2);
}

TEST(ThreadStop, no_signal_is_lost_and_none_leaves_it_standing) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "the thread sanitizer keeps a child's signals for later, one of each number";
#endif
  Computing child;
  StopCounts counts;
  int stopped = 0, signalled = 0;
  for (int i = 0; i < 3000; ++i) {
    child.send();
    ThreadStop stop(child.pid(), child.probe(), counts);
    stopped += stop.state() == ThreadStop::State::stopped;
    signalled += stop.state() == ThreadStop::State::signalled;
  }
  EXPECT_EQ(stopped + signalled, 3000);
  EXPECT_EQ(counts.stops, static_cast<uint64_t>(stopped));
  child.until_it_works();
  for (int i = 0; i < 10'000 && child.got() < child.sent(); ++i) ::usleep(1000);
  EXPECT_EQ(child.got(), child.sent());
}

TEST(ThreadStop, a_process_stopped_by_job_control_stays_stopped) {
  Computing child;
  ::kill(child.pid(), SIGSTOP);
  while (child.state() != 'T') ::usleep(100);
  StopCounts counts;
  {
    const ThreadStop stop(child.pid(), child.probe(), counts);
    EXPECT_EQ(stop.state(), ThreadStop::State::stopped);
  }
  for (int i = 0; i < 1000 && child.state() != 'T'; ++i) ::usleep(100);
  EXPECT_EQ(child.state(), 'T');
  ::kill(child.pid(), SIGCONT);
  child.until_it_works();
}

TEST(ThreadStop, a_child_that_has_ended_is_gone_and_left_to_be_reaped) {
  Computing child;
  ::kill(child.pid(), SIGKILL);
  siginfo_t info{};
  ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(child.pid()), &info, WEXITED | WNOWAIT), 0);
  StopCounts counts;
  const ThreadStop stop(child.pid(), child.probe(), counts);
  EXPECT_EQ(stop.state(), ThreadStop::State::gone);
  EXPECT_EQ(counts.stop_refused, 0U);
  EXPECT_EQ(::waitid(P_PID, static_cast<id_t>(child.pid()), &info, WEXITED | WNOWAIT), 0);
}

TEST(ThreadStop, a_process_with_another_tracer_is_refused_and_counted) {
  Computing child;
  int ready[2], end[2];
  ASSERT_EQ(::pipe(ready), 0);
  ASSERT_EQ(::pipe(end), 0);
  const pid_t tracer = ::fork();
  if (tracer == 0) {
    const char seized = ::ptrace(PTRACE_SEIZE, child.pid(), nullptr, nullptr) == 0;
    char nothing = 0;
    if (::write(ready[1], &seized, 1) == 1 && ::read(end[0], &nothing, 1) == 1) ::_exit(0);
    ::_exit(1);
  }
  char seized = 0;
  ASSERT_EQ(::read(ready[0], &seized, 1), 1);
  if (seized == 1) {
    StopCounts counts;
    const ThreadStop stop(child.pid(), child.probe(), counts);
    EXPECT_EQ(stop.state(), ThreadStop::State::refused);
    EXPECT_EQ(counts.stop_refused, 1U);
    EXPECT_EQ(counts.stops, 0U);
    child.until_it_works();
  }
  ASSERT_EQ(::write(end[1], "", 1), 1);
  ::waitpid(tracer, nullptr, 0);
  for (const int fd : {ready[0], ready[1], end[0], end[1]}) ::close(fd);
  if (seized != 1) GTEST_SKIP() << "ptrace is refused here";
}

}  // namespace
}  // namespace phlox::process
