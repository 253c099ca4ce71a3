// The state of a process id before anything else is read: does it exist, is it a process at all, its state,
// its owner, its tracer. cli uses it to say at once why a target cannot be recorded, or what is unusual about
// one that can. The parsers are pure (text of /proc in, values out); only the read_ functions open files.
// Touches no memory of the target.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "phlox/base/descriptor.h"
#include "phlox/base/result.h"

namespace phlox::process {

// "Uid:" and "Gid:" of /proc/PID/status, in its order.
struct Ids {
  uint32_t real = 0, effective = 0, saved = 0, filesystem = 0;
  friend bool operator==(const Ids&, const Ids&) = default;
};

// The lines of /proc/PID/status (fs/proc/array.c) that we use. A line that is missing (older kernel) leaves
// its default.
struct Status {
  std::string name;   // comm, escapes undone
  char state = '?';   // R running, S sleeping, D uninterruptible, T stopped, t stopped by a tracer, Z zombie,
                      // X dead, I idle
  pid_t process = 0;  // Tgid: differs from the given id if that is a thread's
  pid_t pid = 0;
  pid_t parent = 0;
  pid_t tracer = 0;  // 0: none
  Ids uid, gid;
  std::vector<uint32_t> groups;
  std::vector<pid_t> namespace_pids;  // NSpid: ours first, the innermost namespace's last
  uint64_t permitted_capabilities = 0, effective_capabilities = 0;
  bool no_new_privileges = false;
  int seccomp = 0;  // 0 off, 1 strict, 2 filter
  int threads = 0;
  bool kernel_thread = false;  // "Kthread: 1", since 6.8
};
std::optional<Status> parse_status(std::string_view text);
std::optional<Status> read_status(pid_t pid);

// Fields of /proc/PID/stat that status does not have.
struct Stat {
  std::string name;
  char state = '?';
  pid_t parent = 0;
  uint64_t flags = 0;        // PF_* of include/linux/sched.h
  uint64_t cpu_ticks = 0;    // user and system, all threads
  uint64_t start_ticks = 0;  // since boot: with the pid, the identity of a process
  bool kernel_thread() const;
};
std::optional<Stat> parse_stat(std::string_view text);
std::optional<Stat> read_stat(pid_t pid);

// The NUL-divided arguments of /proc/PID/cmdline as one line; control characters are escaped.
std::string parse_command_line(std::string_view bytes);

struct ThreadName {
  pid_t tid = 0;
  std::string name;  // comm
};

enum class Bits { unknown, bits32, bits64 };
// From the first bytes of an ELF file (e_ident[EI_CLASS]).
Bits parse_elf_class(std::string_view first_bytes);

struct ProcessState {
  pid_t pid = 0;
  Status status;
  Stat stat;
  std::string executable;    // as the target sees it; empty: may not be read
  std::string command_line;  // empty: a kernel thread, or a zombie
  Bits bits = Bits::unknown;
  // Whether its namespaces differ from ours; nothing if that is not visible.
  std::optional<bool> other_pid_namespace, other_mount_namespace, other_user_namespace;
  std::string tracer_name;  // comm of status.tracer

  bool kernel_thread() const { return status.kernel_thread || stat.kernel_thread(); }
  bool zombie() const { return status.state == 'Z' || status.state == 'X'; }
  bool stopped() const { return status.state == 'T'; }
  bool traced() const { return status.tracer != 0; }
  // "python3 app.py", or "[kworker/0:1]" if there is no command line.
  std::string title() const;
};

// Fails with no_such_process (also for the id of a thread, naming its process), or permission if /proc hides
// it (hidepid).
Result<ProcessState> read_process_state(pid_t pid);

// Whether its namespace of this kind ("pid", "mnt", "time": a name in /proc/PID/ns) differs from ours; none:
// that is not visible, or the kernel has no such namespaces.
std::optional<bool> other_namespace(pid_t pid, const char* kind);

// The process of a thread's id; a process's own id is that of its first thread. None: there is no such
// thread.
std::optional<pid_t> find_process_of(pid_t tid);

// Why it cannot be recorded whatever our rights: zombie, kernel thread, 32-bit. Pure.
Result<void> check_recordable(const ProcessState& state);
// Facts about a recordable target that the user should know: stopped, traced by another process. Pure. Whole
// sentences.
std::vector<std::string> remarks_on(const ProcessState& state);

// All present threads, by tid.
std::vector<ThreadName> read_threads(pid_t pid);

// A descriptor that stays with this very process even if its id is given to another: fails as
// read_process_state does.
Result<Descriptor> open_pidfd(pid_t pid);

}  // namespace phlox::process
