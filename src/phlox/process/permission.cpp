#include "phlox/process/permission.h"

#include <fmt/format.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "phlox/process/host_rights.h"
#include "phlox/process/text_file.h"

namespace phlox::process {
namespace {

constexpr unsigned kCapSysPtrace = 19;  // include/uapi/linux/capability.h
constexpr uint64_t kSysPtrace = uint64_t{1} << kCapSysPtrace;

bool is_one_user(const PermissionFacts& f) {
  // __ptrace_may_access compares the caller's real ids (process_vm_readv) with all three of the target.
  return f.our_uid.real == f.uid.real && f.our_uid.real == f.uid.effective && f.our_uid.real == f.uid.saved &&
         f.our_gid.real == f.gid.real && f.our_gid.real == f.gid.effective && f.our_gid.real == f.gid.saved;
}

std::string with_sudo(const std::string& retry) {
  return fmt::format("sudo phlox {}", retry);
}

std::string for_container() {
  return "give the container the right: docker run --cap-add SYS_PTRACE (Kubernetes: "
         "securityContext.capabilities.add: [\"SYS_PTRACE\"]), or run phlox on the host";
}

// If CAP_SYS_PTRACE is missing: root in a container needs another container, any other user needs root.
std::string to_get_the_capability(const PermissionFacts& f, const std::string& retry) {
  if (f.our_uid.effective == 0 || f.in_container) return for_container();
  return with_sudo(retry);
}

std::string ids_of(const PermissionFacts& f) {
  if (f.uid.real == f.uid.effective && f.uid.real == f.uid.saved) {
    if (f.our_uid.real == f.uid.real) {
      return fmt::format("it runs with groups {}/{}/{} (real/effective/saved), phlox with group {}",
                         f.gid.real, f.gid.effective, f.gid.saved, f.our_gid.real);
    }
    return fmt::format("it runs as user {}, phlox as user {}", describe_user(f.uid.real),
                       describe_user(f.our_uid.real));
  }
  return fmt::format("it runs as users {}/{}/{} (real/effective/saved), phlox as user {}", f.uid.real,
                     f.uid.effective, f.uid.saved, describe_user(f.our_uid.real));
}

// Whether `ancestor` is `pid` itself or one of its ancestors.
bool descends_from(pid_t pid, pid_t ancestor) {
  constexpr int kDeepest = 1000;
  for (int depth = 0; depth < kDeepest && pid > 1; ++depth) {
    if (pid == ancestor) return true;
    const auto stat = read_stat(pid);
    if (!stat) return false;
    pid = stat->parent;
  }
  return false;
}

Refusal by_user(const PermissionFacts& f, bool capable, const std::string& retry) {
  if (capable) {
    return {PermissionCheck::user_namespace,
            fmt::format("{}, in another user namespace, where our CAP_SYS_PTRACE does not count", ids_of(f)),
            "run phlox as root of the host (the initial user namespace)"};
  }
  if (f.our_uid.effective == 0) {
    return {PermissionCheck::container, fmt::format("{}, and this root lacks CAP_SYS_PTRACE", ids_of(f)),
            for_container()};
  }
  // It is enough to become the target's user, even if root has no CAP_SYS_PTRACE.
  if (f.in_container && f.uid.real != 0) {
    return {PermissionCheck::user, ids_of(f),
            fmt::format("run phlox as that user: docker exec -u {} CONTAINER phlox {}", f.uid.real, retry)};
  }
  return {PermissionCheck::user, ids_of(f), with_sudo(retry)};
}

std::optional<Refusal> by_yama(const PermissionFacts& f, bool capable_there, const std::string& retry) {
  const int scope = f.yama_scope.value_or(0);
  if (scope >= 3) {
    return Refusal{PermissionCheck::yama_off,
                   "kernel.yama.ptrace_scope is 3: no process may read another until the next boot",
                   "boot the machine with kernel.yama.ptrace_scope below 3"};
  }
  if (scope == 2 && !capable_there) {
    return Refusal{PermissionCheck::yama_capability,
                   "kernel.yama.ptrace_scope is 2: only CAP_SYS_PTRACE may read other processes",
                   to_get_the_capability(f, retry)};
  }
  if (scope == 1 && !capable_there && !f.descendant) {
    return Refusal{PermissionCheck::yama_descendant,
                   "kernel.yama.ptrace_scope is 1: a process may only read those that it started",
                   f.in_container
                       ? for_container()
                       : fmt::format("{}, or for all: sudo sysctl kernel.yama.ptrace_scope=0, or start "
                                     "the program by phlox: phlox "
                                     "record -- python3 app.py",
                                     with_sudo(retry))};
  }
  return {};
}

Refusal by_filter_or_module(const PermissionFacts& f) {
  if (f.in_container && f.our_seccomp == 2) {
    return {PermissionCheck::system_call, "the container's seccomp profile filters the call",
            for_container()};
  }
  if (f.our_seccomp == 2) {
    return {PermissionCheck::system_call, "a seccomp filter around phlox seems to forbid the call",
            "run phlox outside of the sandbox that set the filter (Seccomp in /proc/self/status)"};
  }
  return {PermissionCheck::security_module,
          "user, capabilities and Yama would allow it, so a security module (AppArmor, SELinux) or a sandbox "
          "forbids it",
          "its log says which: sudo dmesg | grep -iE 'apparmor|avc|audit'"};
}

}  // namespace

std::string describe_user(uint32_t uid) {
  passwd entry{};
  passwd* found = nullptr;
  char buffer[4096];
  if (::getpwuid_r(uid, &entry, buffer, sizeof buffer, &found) != 0 || found == nullptr)
    return std::to_string(uid);
  return fmt::format("{} ({})", uid, found->pw_name);
}

Refusal explain_refusal(const PermissionFacts& f, const std::string& retry) {
  const bool capable = (f.our_capabilities & kSysPtrace) != 0;
  // The capability counts if no user namespace is between us; if that is not visible, assume so.
  const bool capable_there = capable && !f.other_user_namespace.value_or(false);

  if (f.error == ENOSYS) {
    return {PermissionCheck::system_call, "this kernel or sandbox does not have the call",
            "a sandbox like gVisor leaves it out: run phlox on the host"};
  }
  if (!is_one_user(f) && !capable_there) return by_user(f, capable, retry);
  if (f.dumpable == false && !capable_there) {
    return {PermissionCheck::dumpable,
            "it is not dumpable: it changed its user, was started from a file that its user may not read, or "
            "asked for it by "
            "prctl(PR_SET_DUMPABLE)",
            to_get_the_capability(f, retry)};
  }
  if (!capable_there && f.other_user_namespace == true) {
    return {PermissionCheck::user_namespace, "it is in another user namespace, where we have no capabilities",
            with_sudo(retry)};
  }
  if (!capable_there && (f.capabilities & ~f.our_capabilities) != 0) {
    return {PermissionCheck::capabilities,
            fmt::format("it has capabilities that phlox lacks ({:#x})", f.capabilities & ~f.our_capabilities),
            to_get_the_capability(f, retry)};
  }
  if (auto refusal = by_yama(f, capable_there, retry)) return *std::move(refusal);
  return by_filter_or_module(f);
}

PermissionFacts read_permission_facts(const ProcessState& state) {
  PermissionFacts facts;
  facts.pid = state.pid;
  facts.uid = state.status.uid;
  facts.gid = state.status.gid;
  facts.capabilities = state.status.permitted_capabilities;
  facts.other_user_namespace = state.other_user_namespace;
  facts.tracer = state.status.tracer;
  facts.descendant = descends_from(state.pid, ::getpid());
  if (const auto text = read_text("/proc/self/status")) {
    if (const auto own = parse_status(*text)) {
      facts.our_uid = own->uid;
      facts.our_gid = own->gid;
      facts.our_capabilities = own->effective_capabilities;
      facts.our_seccomp = own->seccomp;
    }
  }
  // If a process is not dumpable, its files belong to root (fs/proc/base.c: task_dump_owner). This says
  // nothing if the process itself runs as root.
  struct stat owner {};
  if (::stat(fmt::format("/proc/{}/stat", state.pid).c_str(), &owner) == 0 && facts.uid.effective != 0) {
    facts.dumpable = owner.st_uid == facts.uid.effective;
  }
  facts.yama_scope = read_yama_scope();
  facts.in_container = seems_contained();
  return facts;
}

Error permission_error(const PermissionFacts& facts, const std::string& retry) {
  Refusal refusal = explain_refusal(facts, retry);
  return {ErrorKind::permission,
          fmt::format("cannot read memory of process {}: {} ({}, errno {})", facts.pid, refusal.reason,
                      facts.call, facts.error),
          std::move(refusal.hint)};
}

}  // namespace phlox::process
