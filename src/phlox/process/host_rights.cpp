#include "phlox/process/host_rights.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdlib>

#include "phlox/process/control_group.h"
#include "phlox/process/text_file.h"

namespace phlox::process {
namespace {

// include/linux/proc_ns.h: PROC_USER_INIT_INO
constexpr ino_t kInitialUserNamespace = 0xEFFFFFFD;

std::optional<int> read_number(const char* file) {
  const auto text = read_text(file);
  int number = 0;
  if (!text || std::from_chars(text->data(), text->data() + text->size(), number).ec != std::errc())
    return {};
  return number;
}

bool exists(const char* path) {
  return ::access(path, F_OK) == 0;
}

std::string first_line(const char* file) {
  auto text = read_text(file).value_or("");
  text.resize(std::min(text.find_first_of(std::string_view("\n\0", 2)), text.size()));
  return text;
}

std::string with_capability(const HostRights& host, std::string_view capability, const std::string& retry) {
  if (host.in_container) {
    const std::string grant =
        fmt::format("docker run --cap-add {} (Kubernetes: securityContext.capabilities.add: [\"{}\"])",
                    capability, capability);
    if (host.uid.effective == 0) return "give the container the right: " + grant;
    return fmt::format("as root of the container (docker exec -u 0 CONTAINER phlox {}), which may need {}",
                       retry, grant);
  }
  // In a user namespace we are usually in a PID namespace too; the host's PIDs then differ.
  if (!host.initial_user_namespace)
    return fmt::format("as root of the host, which may count PIDs otherwise (phlox list): phlox {}", retry);
  return fmt::format("sudo phlox {}", retry);
}

// If no capability or setting explains the refusal.
Explanation filtered(const HostRights& host, std::string_view call, int error) {
  if (host.seccomp == 2) {
    return {fmt::format("a seccomp filter around phlox forbids it ({}, errno {})", call, error),
            host.in_container ? "run the container with --security-opt seccomp=unconfined, or with a profile "
                                "that allows " +
                                    std::string(call)
                              : "run phlox outside of the sandbox that set the filter"};
  }
  return {fmt::format("a security module or a sandbox forbids it ({}, errno {})", call, error),
          "its log says which: sudo dmesg | grep -iE 'apparmor|avc|audit'"};
}

}  // namespace

std::string_view name_of(Capability capability) {
  switch (capability) {
    case Capability::sys_ptrace:
      return "SYS_PTRACE";
    case Capability::sys_admin:
      return "SYS_ADMIN";
    case Capability::sys_nice:
      return "SYS_NICE";
    case Capability::syslog:
      return "SYSLOG";
    case Capability::perfmon:
      return "PERFMON";
    case Capability::bpf:
      return "BPF";
    case Capability::checkpoint_restore:
      return "CHECKPOINT_RESTORE";
  }
  return "";
}

const std::vector<Capability>& capabilities_of_use() {
  static const std::vector<Capability> kAll = {
      Capability::sys_ptrace, Capability::sys_nice,           Capability::perfmon,  Capability::syslog,
      Capability::bpf,        Capability::checkpoint_restore, Capability::sys_admin};
  return kAll;
}

std::optional<int> read_yama_scope() {
  return read_number("/proc/sys/kernel/yama/ptrace_scope");
}

bool seems_contained() {
  return exists("/.dockerenv") || exists("/run/.containerenv") ||
         std::getenv("KUBERNETES_SERVICE_HOST") != nullptr || std::getenv("container") != nullptr;
}

HostRights read_host_rights() {
  HostRights host;
  if (const auto text = read_text("/proc/self/status")) {
    if (const auto own = parse_status(*text)) {
      host.uid = own->uid;
      host.capabilities = own->effective_capabilities;
      host.seccomp = own->seccomp;
      host.no_new_privileges = own->no_new_privileges;
    }
  }
  struct stat space {};
  host.initial_user_namespace =
      ::stat("/proc/self/ns/user", &space) != 0 || space.st_ino == kInitialUserNamespace;
  host.in_container = seems_contained();
  host.yama_scope = read_yama_scope();
  host.perf_paranoid = read_number("/proc/sys/kernel/perf_event_paranoid");
  host.kptr_restrict = read_number("/proc/sys/kernel/kptr_restrict");
  host.bpf_disabled = read_number("/proc/sys/kernel/unprivileged_bpf_disabled");
  host.has_btf = exists("/sys/kernel/btf/vmlinux");
  host.real_time_group = read_control_groups(::getpid()).real_time_us;
  rlimit limit{};
  if (::getrlimit(RLIMIT_RTPRIO, &limit) == 0) host.most_real_time = limit.rlim_cur;
  host.security_modules = first_line("/sys/kernel/security/lsm");
  host.label = first_line("/proc/self/attr/current");
  return host;
}

// kernel/sched/syscalls.c: user_check_sched_setscheduler checks RLIMIT_RTPRIO, then capable(CAP_SYS_NICE);
// kernel/sched/core.c: sched_setscheduler refuses if the group has no budget (CONFIG_RT_GROUP_SCHED).
Explanation explain_no_real_time(const HostRights& host, int error, const std::string& retry) {
  const bool may = host.counts(Capability::sys_nice) || host.most_real_time > 0;
  if (error == EPERM && may && host.real_time_group == 0) {
    return {"our control group has no real-time budget (its cpu.rt_runtime_us is 0)",
            "run phlox in the root control group of cpu, or give this one a budget: echo 950000 | sudo tee "
            "/sys/fs/cgroup/cpu/GROUP/cpu.rt_runtime_us"};
  }
  if (error == EPERM && !may) {
    const std::string hint = with_capability(host, "SYS_NICE", retry);
    return {host.has(Capability::sys_nice)
                ? "our CAP_SYS_NICE does not count in this user namespace, and RLIMIT_RTPRIO is 0"
                : "no CAP_SYS_NICE, and RLIMIT_RTPRIO is 0",
            host.in_container ? hint + ", or docker run --ulimit rtprio=1"
                              : hint + ", or for this shell: sudo prlimit --rtprio=1 --pid $$"};
  }
  return filtered(host, "sched_setscheduler", error);
}

// kernel/events/core.c: perf_event_open and perf_mmap. For the user's own threads, with the kernel excluded,
// mainline requires no right; Debian and Ubuntu refuse even that if kernel.perf_event_paranoid is 3 or more.
Explanation explain_no_event(const HostRights& host, const EventRefusal& refusal, const std::string& retry) {
  const bool capable = host.counts(Capability::perfmon) || host.counts(Capability::sys_admin);
  if (!host.perf_paranoid || (refusal.error == ENOSYS && host.seccomp != 2))
    return {
        fmt::format("this kernel or sandbox has no perf events ({}, errno {})", refusal.call, refusal.error),
        host.in_container ? "run phlox on the host" : ""};
  if (refusal.call == "mmap" && refusal.error == EPERM) {
    return {fmt::format("no memory for it may be locked ({}, errno {}): RLIMIT_MEMLOCK and "
                        "kernel.perf_event_mlock_kb are used up",
                        refusal.call, refusal.error),
            "sudo sysctl kernel.perf_event_mlock_kb=2048"};
  }
  if (!capable && *host.perf_paranoid > 2 && host.seccomp != 2) {
    return {fmt::format("kernel.perf_event_paranoid is {}: only CAP_PERFMON may have any ({}, errno {})",
                        *host.perf_paranoid, refusal.call, refusal.error),
            with_capability(host, "PERFMON", retry) +
                (host.in_container ? "" : ", or for all: sudo sysctl kernel.perf_event_paranoid=2")};
  }
  return filtered(host, refusal.call, refusal.error);
}

std::string advise_kernel_events(const HostRights& host, const std::string& retry) {
  return with_capability(host, "PERFMON", retry) +
         (host.in_container ? "" : ", or for all: sudo sysctl kernel.perf_event_paranoid=1");
}

}  // namespace phlox::process
