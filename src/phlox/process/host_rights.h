// What this machine lets phlox do, as far as it can be read: our capabilities, limits and filters, and the
// kernel's settings. Also why a right was refused: pure, from those facts and the errno. A right that can be
// tried is tried first (rights_trial.h): the kernel decides, we explain. permission.h says why the memory of
// a process may not be read.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "phlox/process/process_state.h"

namespace phlox::process {

// Capabilities that matter for a recording; numbers of include/uapi/linux/capability.h.
enum class Capability : unsigned {
  sys_ptrace = 19,          // read and stop processes of others: __ptrace_may_access
  sys_admin = 21,           // includes perfmon and bpf on kernels before 5.8
  sys_nice = 23,            // the real-time class: kernel/sched/syscalls.c, user_check_sched_setscheduler
  syslog = 34,              // addresses in /proc/kallsyms: kernel/kallsyms.c, kallsyms_show_value
  perfmon = 38,             // perf events of CPUs and of the kernel: perf_event.h, perf_allow_cpu, _kernel
  bpf = 39,                 // kernel/bpf/syscall.c
  checkpoint_restore = 40,  // /proc/PID/map_files: fs/proc/base.c, proc_map_files_get_link
};
std::string_view name_of(Capability capability);  // "SYS_PTRACE"
const std::vector<Capability>& capabilities_of_use();

struct HostRights {
  Ids uid;
  uint64_t capabilities = 0;  // effective
  // Capabilities of another user namespace do not count for capable() (kernel/capability.c).
  bool initial_user_namespace = true;
  bool in_container = false;  // a hint only
  int seccomp = 0;            // 0 off, 1 strict, 2 filter
  bool no_new_privileges = false;
  std::optional<int> yama_scope;     // none: no Yama
  std::optional<int> perf_paranoid;  // none: no perf events (CONFIG_PERF_EVENTS)
  std::optional<int> kptr_restrict;
  std::optional<int> bpf_disabled;         // kernel.unprivileged_bpf_disabled
  bool has_btf = false;                    // /sys/kernel/btf/vmlinux
  std::optional<int64_t> real_time_group;  // cpu.rt_runtime_us of our control group (version 1)
  uint64_t most_real_time = 0;             // RLIMIT_RTPRIO
  std::string security_modules;            // /sys/kernel/security/lsm; empty: not visible
  std::string label;                       // /proc/self/attr/current, of the module in charge

  bool has(Capability capability) const {
    return ((capabilities >> static_cast<unsigned>(capability)) & 1) != 0;
  }
  // The kernel checks capable(): a capability of a user namespace of our own does not count.
  bool counts(Capability capability) const { return initial_user_namespace && has(capability); }
};
HostRights read_host_rights();

// Shared with permission.h.
std::optional<int> read_yama_scope();
bool seems_contained();

// The refused right, and the command that helps. `retry`: the arguments of a new try, "record -p 4711".
struct Explanation {
  std::string reason;
  std::string hint;
};
// SCHED_FIFO, with this errno.
Explanation explain_no_real_time(const HostRights& host, int error, const std::string& retry);
// A perf event of a thread of a process that we may read.
struct EventRefusal {
  std::string call = "perf_event_open";  // or mmap
  int error = 0;
};
Explanation explain_no_event(const HostRights& host, const EventRefusal& refusal, const std::string& retry);
// What would make the kernel visible to a perf event.
std::string advise_kernel_events(const HostRights& host, const std::string& retry);

}  // namespace phlox::process
