#include "phlox/process/launch.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <grp.h>
#include <poll.h>
#include <pwd.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "phlox/base/interrupted.h"
#include "phlox/base/stack_limit.h"
#include "phlox/base/text.h"

namespace phlox::process {
namespace {

// Sent by a child that could not start the program, before it exits.
struct ChildReport {
  enum class Step : int32_t { groups, user, exec };
  Step step = Step::exec;
  int32_t error = 0;
};

std::optional<uint32_t> id_of(const char* text) {
  if (text == nullptr) return {};
  return parse_number<uint32_t>(text);
}

Error system_error(const char* what) {
  return {ErrorKind::launch,
          fmt::format("cannot start a program: {} (errno {})", std::strerror(errno), errno), what};
}

Result<std::array<Descriptor, 2>> make_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return tl::unexpected(system_error("too many open files? ulimit -n"));
  return std::array<Descriptor, 2>{Descriptor(ends[0]), Descriptor(ends[1])};
}

// The environment of the program: ours, with the calling user's HOME and name instead of root's.
std::vector<std::string> environment_for(const LaunchOptions& options) {
  std::vector<std::string> variables;
  const auto is_replaced = [&](std::string_view variable) {
    if (!options.user || options.user->name.empty()) return false;
    for (const std::string_view name : {"HOME=", "USER=", "LOGNAME=", "SHELL=", "MAIL="}) {
      if (variable.starts_with(name)) return true;
    }
    return false;
  };
  for (char** variable = environ; variable != nullptr && *variable != nullptr; ++variable) {
    if (!is_replaced(*variable)) variables.emplace_back(*variable);
  }
  if (options.user && !options.user->name.empty()) {
    variables.push_back("HOME=" + options.user->home);
    variables.push_back("USER=" + options.user->name);
    variables.push_back("LOGNAME=" + options.user->name);
    variables.push_back("SHELL=" + options.user->shell);
  }
  return variables;
}

std::vector<char*> pointers_to(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

// Between fork and exec: nothing here may allocate or lock.
[[noreturn]] void run_child(int go, int report, const LaunchOptions& options, char* const* arguments,
                            char* const* environment) {
  const auto give_up = [&](ChildReport::Step step) {
    const ChildReport failure{step, errno};
    (void)!::write(report, &failure, sizeof failure);
    ::_exit(127);
  };
  char byte = 0;
  const ssize_t got = retried([&] { return ::read(go, &byte, 1); });
  if (got != 1) ::_exit(127);  // phlox died before it released us
  if (options.user) {
    if (::setgroups(options.user->groups.size(), options.user->groups.data()) != 0)
      give_up(ChildReport::Step::groups);
    if (::setresgid(options.user->gid, options.user->gid, options.user->gid) != 0)
      give_up(ChildReport::Step::groups);
    if (::setresuid(options.user->uid, options.user->uid, options.user->uid) != 0)
      give_up(ChildReport::Step::user);
  }
  ::sigprocmask(SIG_SETMASK, &options.signal_mask, nullptr);
  restore_stack_limit();
  ::execvpe(arguments[0], arguments, environment);
  give_up(ChildReport::Step::exec);
  ::_exit(127);
}

}  // namespace

std::optional<CallingUser> calling_user(const GetVariable& variable, uint32_t effective_uid) {
  if (effective_uid != 0) return {};
  const auto uid = id_of(variable("SUDO_UID"));
  const auto gid = id_of(variable("SUDO_GID"));
  if (!uid || !gid || *uid == 0) return {};
  CallingUser user;
  user.uid = *uid;
  user.gid = *gid;
  user.groups = {user.gid};
  passwd entry{};
  passwd* found = nullptr;
  std::array<char, 16384> buffer;
  if (::getpwuid_r(*uid, &entry, buffer.data(), buffer.size(), &found) == 0 && found != nullptr) {
    user.name = found->pw_name;
    user.home = found->pw_dir;
    user.shell = found->pw_shell;
    int count = 256;
    std::vector<gid_t> groups(static_cast<size_t>(count));
    if (::getgrouplist(found->pw_name, user.gid, groups.data(), &count) < 0) {
      groups.resize(static_cast<size_t>(count));
      if (::getgrouplist(found->pw_name, user.gid, groups.data(), &count) < 0) count = 0;
    }
    groups.resize(static_cast<size_t>(count));
    if (!groups.empty()) user.groups = std::move(groups);
  }
  return user;
}

std::optional<CallingUser> calling_user() {
  return calling_user([](const char* name) { return std::getenv(name); }, ::geteuid());
}

std::string ExitStatus::describe() const {
  if (signal == 0) return fmt::format("exit {}", code);
  const char* name = ::sigabbrev_np(signal);
  return fmt::format("signal {}{}", signal, name != nullptr ? fmt::format(" (SIG{})", name) : "");
}

Result<LaunchedProgram> LaunchedProgram::start(std::vector<std::string> command,
                                               const LaunchOptions& options) {
  if (command.empty() || command[0].empty())
    return fail(ErrorKind::usage, "no program to start", "phlox record -- python3 app.py");
  auto go = make_pipe();
  if (!go) return fail(go);
  auto report = make_pipe();
  if (!report) return fail(report);
  std::vector<std::string> variables = environment_for(options);
  const std::vector<char*> arguments = pointers_to(command);
  const std::vector<char*> environment = pointers_to(variables);

  const pid_t pid = ::fork();
  if (pid < 0) return tl::unexpected(system_error("too many processes? ulimit -u"));
  if (pid == 0) {
    // Otherwise the child's own copy of the writing end would hide our death from it.
    (*go)[1].close();
    run_child((*go)[0].get(), (*report)[1].get(), options, arguments.data(), environment.data());
  }
  LaunchedProgram program;
  program.pid_.value = pid;
  program.pidfd_ = Descriptor(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  program.go_ = std::move((*go)[1]);
  program.report_ = std::move((*report)[0]);
  program.name_ = command[0];
  program.under_sudo_ = options.user.has_value();
  return program;
}

LaunchedProgram::~LaunchedProgram() {
  if (pid_.value < 0 || released_ || status_) return;
  go_.close();  // the child reads end of file and exits
  reap(0);
}

Result<void> LaunchedProgram::release() {
  const char byte = 1;
  (void)!::write(go_.get(), &byte, 1);
  go_.close();
  released_ = true;
  ChildReport failure;
  const ssize_t got = retried([&] { return ::read(report_.get(), &failure, sizeof failure); });
  report_.close();
  if (got != static_cast<ssize_t>(sizeof failure)) return {};  // closed by execve
  reap(0);
  if (failure.step != ChildReport::Step::exec) {
    return fail(ErrorKind::launch,
                fmt::format("cannot become the calling user to start '{}': {} (errno {})", name_,
                            std::strerror(failure.error), failure.error),
                "without SUDO_UID and SUDO_GID in the environment the program runs as root");
  }
  const std::string hint =
      failure.error != ENOENT ? "is the file executable, and the interpreter in its first line there?"
      : under_sudo_
          ? "sudo replaces PATH: give the whole path, or keep yours: sudo env \"PATH=$PATH\" phlox ..."
          : "is it installed, and its folder in PATH?";
  return fail(ErrorKind::launch,
              failure.error == ENOENT
                  ? fmt::format("cannot start '{}': no such command (errno {})", name_, failure.error)
                  : fmt::format("cannot start '{}': {} (errno {})", name_, std::strerror(failure.error),
                                failure.error),
              hint);
}

std::optional<ExitStatus> LaunchedProgram::reap(int flags) {
  if (status_) return status_;
  siginfo_t info{};
  const int done =
      retried([&] { return ::waitid(P_PID, static_cast<id_t>(pid_.value), &info, WEXITED | flags); });
  if (done < 0) {
    status_ = ExitStatus{};  // already reaped (our parent ignores SIGCHLD): its exit status is unknown
    return status_;
  }
  if (info.si_pid == 0) return {};
  ExitStatus status;
  if (info.si_code == CLD_EXITED) {
    status.code = info.si_status;
  } else {
    status.signal = info.si_status;
    status.core = info.si_code == CLD_DUMPED;
  }
  status_ = status;
  return status_;
}

std::optional<ExitStatus> LaunchedProgram::try_wait() {
  return reap(WNOHANG);
}

ExitStatus LaunchedProgram::wait() {
  return *reap(0);
}

void LaunchedProgram::send_signal(int signal) const {
  if (pidfd_) (void)::syscall(SYS_pidfd_send_signal, pidfd_.get(), signal, nullptr, 0);
}

}  // namespace phlox::process
