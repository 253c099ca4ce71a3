// Starts a program in order to record it from its first instruction, waits for it, and forwards signals to
// it. Used by cli. The program is never stopped, and runs on when phlox dies: when the object is destroyed, a
// released program is left alone, and one that was never released is ended.
#pragma once

#include <signal.h>
#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "phlox/base/descriptor.h"
#include "phlox/base/result.h"

namespace phlox::process {

// The user of a launched program, and the owner of files, under sudo: the user who called it.
struct CallingUser {
  uint32_t uid = 0, gid = 0;
  std::string name, home, shell;  // empty: not in the user database
  std::vector<gid_t> groups;
};
// From SUDO_UID, SUDO_GID: nothing unless we are root and both are numbers of another user. Pure but for the
// user database.
using GetVariable = std::function<const char*(const char*)>;
std::optional<CallingUser> calling_user(const GetVariable& variable, uint32_t effective_uid);
std::optional<CallingUser> calling_user();

struct LaunchOptions {
  std::optional<CallingUser> user;  // become this user; HOME, USER, LOGNAME and SHELL follow
  sigset_t signal_mask{};           // for the program: our mask before we blocked signals for ourselves
};

struct ExitStatus {
  int code = 0;    // of exit()
  int signal = 0;  // not 0: ended by it
  bool core = false;
  // As a shell reports it: the code, or 128 + the signal.
  int shell_status() const { return signal != 0 ? 128 + signal : code; }
  std::string describe() const;  // "exit 0", "signal 9 (SIGKILL)"
};

class LaunchedProgram {
 public:
  // Forks; the child waits for release(). It keeps our scheduling class, affinity, limits and signal
  // dispositions of this moment: call it before changing any of them, and before starting threads.
  static Result<LaunchedProgram> start(std::vector<std::string> command, const LaunchOptions& options);
  LaunchedProgram(LaunchedProgram&&) = default;
  LaunchedProgram& operator=(LaunchedProgram&&) = delete;
  ~LaunchedProgram();

  pid_t pid() const { return pid_.value; }
  // Lets it execute the program. Fails with launch (not found, not executable), and has then reaped the
  // child.
  Result<void> release();
  // Reaps it when it has ended. Only one call gets the value from the kernel; later ones repeat it.
  std::optional<ExitStatus> try_wait();
  ExitStatus wait();
  // Signals exactly this process, never another one that got its id. Does nothing once it was reaped. Any
  // thread.
  void send_signal(int signal) const;

 private:
  struct Pid {
    pid_t value = -1;
    Pid() = default;
    Pid(Pid&& other) noexcept : value(std::exchange(other.value, -1)) {}
  };
  LaunchedProgram() = default;
  std::optional<ExitStatus> reap(int flags);

  Pid pid_;
  Descriptor pidfd_;
  Descriptor go_;      // closing or writing it releases the child
  Descriptor report_;  // the child's errno, or end of file when execve worked
  std::string name_;
  bool under_sudo_ = false;
  bool released_ = false;
  std::optional<ExitStatus> status_;
};

}  // namespace phlox::process
