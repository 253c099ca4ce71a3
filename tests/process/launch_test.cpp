#include "phlox/process/launch.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdlib>
#include <map>

#include "phlox/process/process_state.h"

namespace phlox::process {
namespace {

// A pipe whose writing end the program gets as a numbered descriptor; text() reads to the end.
class Output {
 public:
  Output() { EXPECT_EQ(pipe(ends_), 0); }
  ~Output() {
    close(ends_[0]);
    close_writer();
  }
  std::string redirect() const { return ">&" + std::to_string(ends_[1]); }
  void close_writer() {
    if (ends_[1] >= 0) close(ends_[1]);
    ends_[1] = -1;
  }
  std::string text() {
    close_writer();
    std::string text;
    char block[4096];
    for (ssize_t got = 0; (got = read(ends_[0], block, sizeof block)) > 0;)
      text.append(block, static_cast<size_t>(got));
    return text;
  }
  std::string line() {
    std::string text;
    for (char c = 0; read(ends_[0], &c, 1) == 1 && c != '\n';) text += c;
    return text;
  }

 private:
  int ends_[2];
};

LaunchOptions plain() {
  LaunchOptions options;
  sigemptyset(&options.signal_mask);
  return options;
}

int status_of(std::vector<std::string> command) {
  auto program = LaunchedProgram::start(std::move(command), plain());
  EXPECT_TRUE(program);
  EXPECT_TRUE(program->release());
  return program->wait().shell_status();
}

TEST(Launch, exit_status_and_signal_are_passed_as_a_shell_does) {
  EXPECT_EQ(status_of({"true"}), 0);
  EXPECT_EQ(status_of({"sh", "-c", "exit 42"}), 42);
  EXPECT_EQ(status_of({"sh", "-c", "kill -TERM $$"}), 128 + SIGTERM);
  EXPECT_EQ((ExitStatus{0, SIGKILL, false}.describe()), "signal 9 (SIGKILL)");
  EXPECT_EQ((ExitStatus{3, 0, false}.describe()), "exit 3");
}

TEST(Launch, arguments_arrive_as_they_are) {
  Output out;
  auto program = LaunchedProgram::start(
      {"sh", "-c", "printf '%s|' \"$@\" " + out.redirect(), "sh", "a b", "", "*", "--"}, plain());
  ASSERT_TRUE(program && program->release());
  EXPECT_EQ(out.text(), "a b||*|--|");
  program->wait();
}

TEST(Launch, nothing_of_the_program_runs_before_release) {
  Output out;
  auto program = LaunchedProgram::start({"sh", "-c", "echo ran " + out.redirect()}, plain());
  ASSERT_TRUE(program);
  EXPECT_FALSE(program->try_wait());
  const auto state = read_process_state(program->pid());
  ASSERT_TRUE(state);
  EXPECT_NE(state->executable.find("process_tests"), std::string::npos);  // not sh yet
  ASSERT_TRUE(program->release());
  EXPECT_EQ(out.line(), "ran");
  EXPECT_EQ(program->wait().code, 0);
  EXPECT_EQ(program->try_wait()->code, 0);
}

TEST(Launch, a_program_that_is_never_released_never_runs) {
  Output out;
  pid_t pid = 0;
  {
    auto program = LaunchedProgram::start({"sh", "-c", "echo ran " + out.redirect()}, plain());
    ASSERT_TRUE(program);
    pid = program->pid();
  }
  EXPECT_EQ(out.text(), "");
  EXPECT_EQ(waitpid(pid, nullptr, WNOHANG), -1);  // reaped
}

TEST(Launch, a_released_program_outlives_its_object) {
  Output out;
  pid_t pid = 0;
  {
    auto program = LaunchedProgram::start({"sh", "-c", "read line; echo over " + out.redirect()}, plain());
    ASSERT_TRUE(program && program->release());
    pid = program->pid();
  }
  EXPECT_EQ(kill(pid, 0), 0);
  kill(pid, SIGKILL);
  EXPECT_EQ(waitpid(pid, nullptr, 0), pid);
}

TEST(Launch, a_command_that_is_not_there_or_not_executable) {
  for (const char* name : {"no-such-command-of-any-kind", "/no/such/file", "/etc/passwd", "/"}) {
    auto program = LaunchedProgram::start({name}, plain());
    ASSERT_TRUE(program);
    const auto released = program->release();
    ASSERT_FALSE(released) << name;
    EXPECT_EQ(released.error().kind, ErrorKind::launch);
    EXPECT_NE(released.error().message.find(name), std::string::npos);
    EXPECT_FALSE(released.error().hint.empty());
  }
  EXPECT_EQ(LaunchedProgram::start({}, plain()).error().kind, ErrorKind::usage);
}

TEST(Launch, signals_reach_the_program) {
  Output out;
  auto program = LaunchedProgram::start(
      {"sh", "-c", "trap 'echo usr1; exit 7' USR1; echo ready; while :; do sleep 0.01; done ", "sh"},
      plain());
  ASSERT_TRUE(program);
  program->send_signal(0);
  // The shell's own output goes nowhere we look: wait until the trap is set, which /proc shows as a caught
  // signal.
  ASSERT_TRUE(program->release());
  const std::string path = "/proc/" + std::to_string(program->pid()) + "/status";
  for (bool caught = false; !caught;) {
    std::array<char, 4096> text{};
    const int fd = open(path.c_str(), O_RDONLY);
    ASSERT_GE(fd, 0);
    ASSERT_GT(read(fd, text.data(), text.size() - 1), 0);
    close(fd);
    const std::string_view all(text.data());
    const size_t at = all.find("SigCgt:\t");
    ASSERT_NE(at, std::string_view::npos);
    caught = (strtoull(all.data() + at + 8, nullptr, 16) & (1ULL << (SIGUSR1 - 1))) != 0;
    sched_yield();
  }
  program->send_signal(SIGUSR1);
  EXPECT_EQ(program->wait().code, 7);
  program->send_signal(SIGUSR1);  // there is no program any more
}

TEST(Launch, the_program_has_the_mask_it_is_given_not_ours) {
  sigset_t ours, before;
  sigemptyset(&ours);
  sigaddset(&ours, SIGINT);
  sigaddset(&ours, SIGTERM);
  ASSERT_EQ(pthread_sigmask(SIG_BLOCK, &ours, &before), 0);
  Output out;
  LaunchOptions options = plain();
  sigaddset(&options.signal_mask, SIGUSR2);
  // Without a child of the shell's: dash clears the mask for those.
  auto program = LaunchedProgram::start({"sh", "-c",
                                         "while read key value; do case $key in SigBlk:) echo $value " +
                                             out.redirect() + ";; esac; done </proc/$$/status"},
                                        options);
  ASSERT_TRUE(program && program->release());
  EXPECT_EQ(out.line(), "0000000000000800");
  program->wait();
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

TEST(Launch, a_class_and_an_affinity_taken_after_the_start_do_not_reach_the_program) {
  cpu_set_t before;
  ASSERT_EQ(sched_getaffinity(0, sizeof before, &before), 0);
  Output out;
  auto program = LaunchedProgram::start({"sh", "-c",
                                         "grep Cpus_allowed: /proc/self/status " + out.redirect() +
                                             "; cut -d' ' -f41 /proc/self/stat " + out.redirect()},
                                        plain());
  ASSERT_TRUE(program);
  Output same;
  auto reference = LaunchedProgram::start(
      {"sh", "-c", "grep Cpus_allowed: /proc/self/status " + same.redirect()}, plain());
  ASSERT_TRUE(reference && reference->release());
  const std::string expected = same.line();
  reference->wait();
  cpu_set_t one;
  CPU_ZERO(&one);
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &before)) {
      CPU_SET(cpu, &one);
      break;
    }
  }
  ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
  const sched_param priority{1};
  const bool real_time = sched_setscheduler(0, SCHED_FIFO, &priority) == 0;
  const bool released = program->release().has_value();
  const sched_param none{0};
  if (real_time) sched_setscheduler(0, SCHED_OTHER, &none);
  sched_setaffinity(0, sizeof before, &before);
  ASSERT_TRUE(released);
  EXPECT_EQ(out.line(), expected);
  EXPECT_EQ(out.line(), "0");  // field 41: SCHED_OTHER
  program->wait();
}

std::optional<CallingUser> user_of(std::map<std::string, std::string> variables, uint32_t effective = 0) {
  return calling_user(
      [&](const char* name) -> const char* {
        const auto found = variables.find(name);
        return found == variables.end() ? nullptr : found->second.c_str();
      },
      effective);
}

TEST(CallingUser, only_root_called_by_sudo_has_one) {
  const auto user = user_of({{"SUDO_UID", "60001"}, {"SUDO_GID", "60002"}});
  ASSERT_TRUE(user);
  EXPECT_EQ(user->uid, 60001U);
  EXPECT_EQ(user->gid, 60002U);
  EXPECT_EQ(user->groups, (std::vector<gid_t>{60002}));
  EXPECT_FALSE(user_of({{"SUDO_UID", "60001"}, {"SUDO_GID", "60002"}}, 60001));
  EXPECT_FALSE(user_of({}));
  EXPECT_FALSE(user_of({{"SUDO_UID", "60001"}}));
  EXPECT_FALSE(user_of({{"SUDO_UID", "0"}, {"SUDO_GID", "0"}}));
  for (const char* odd : {"", "x", "-1", "1000 ", "99999999999", "0x10"})
    EXPECT_FALSE(user_of({{"SUDO_UID", odd}, {"SUDO_GID", "1"}}));
}

TEST(CallingUser, the_program_becomes_it) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can become somebody else";
  const auto user = user_of({{"SUDO_UID", "1"}, {"SUDO_GID", "1"}});  // daemon, on every Debian
  ASSERT_TRUE(user);
  Output out;
  LaunchOptions options = plain();
  options.user = user;
  auto program =
      LaunchedProgram::start({"sh", "-c",
                              "echo $(id -u) $(id -g) $USER $HOME " + out.redirect() +
                                  "; grep -E '^(Uid|Gid|CapEff)' /proc/self/status " + out.redirect()},
                             options);
  ASSERT_TRUE(program && program->release());
  EXPECT_EQ(out.line(), "1 1 " + user->name + " " + user->home);
  EXPECT_EQ(out.line(), "Uid:\t1\t1\t1\t1");
  EXPECT_EQ(out.line(), "Gid:\t1\t1\t1\t1");
  EXPECT_EQ(out.line(), "CapEff:\t0000000000000000");
  program->wait();
}

}  // namespace
}  // namespace phlox::process
