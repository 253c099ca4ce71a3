// Why the kernel refuses to let us read a process, and the one command that helps. The decision follows the
// kernel's own checks in its order (kernel/ptrace.c: __ptrace_may_access; security/commoncap.c:
// cap_ptrace_access_check; security/yama/yama_lsm.c; Linux 6.x) over a struct of facts and is pure; only the
// read_ function opens files. Call it only after a read has failed: the kernel decides, we explain.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>

#include "phlox/base/result.h"
#include "phlox/process/process_state.h"

namespace phlox::process {

struct PermissionFacts {
  pid_t pid = 0;
  // The caller: us.
  Ids our_uid, our_gid;
  uint64_t our_capabilities = 0;  // effective
  bool in_container = false;      // a hint only: /.dockerenv, Kubernetes' variables, ...
  int our_seccomp = 0;
  // The target.
  Ids uid, gid;
  uint64_t capabilities = 0;  // permitted
  std::optional<bool>
      dumpable;  // not: it changed its user, holds secrets (ssh-agent), or prctl(PR_SET_DUMPABLE, 0)
  std::optional<bool> other_user_namespace;
  bool descendant = false;  // a child of ours, or a child's child
  pid_t tracer = 0;
  // The machine.
  std::optional<int> yama_scope;  // /proc/sys/kernel/yama/ptrace_scope; nothing: no Yama
  // The call that failed.
  std::string call = "process_vm_readv";
  int error = 1;  // errno: EPERM, EACCES, ENOSYS
};

enum class PermissionCheck {
  user,             // it runs as another user
  dumpable,         // it is closed even to its own user
  capabilities,     // it has rights that we lack
  user_namespace,   // our capabilities do not count in its user namespace
  yama_descendant,  // ptrace_scope 1: only descendants
  yama_capability,  // ptrace_scope 2: only with CAP_SYS_PTRACE
  yama_off,         // ptrace_scope 3: no process until the next boot
  container,        // root, but a container's, without CAP_SYS_PTRACE
  system_call,      // the call itself is filtered or missing (seccomp, gVisor)
  security_module,  // none of the above refuses: AppArmor, SELinux, ...
};

struct Refusal {
  PermissionCheck check = PermissionCheck::security_module;
  std::string reason;  // "it runs as user 1000 (alice), phlox as user 1001 (bob)"
  std::string hint;
};

// `retry`: the arguments of a new try, for the hint: "record -p 4711".
Refusal explain_refusal(const PermissionFacts& facts, const std::string& retry);

PermissionFacts read_permission_facts(const ProcessState& state);

// The whole error: "cannot read memory of process 4711: REASON (process_vm_readv, errno 1)".
Error permission_error(const PermissionFacts& facts, const std::string& retry);

// "1000 (alice)"; only the number if the user database does not have it.
std::string describe_user(uint32_t uid);

}  // namespace phlox::process
