#include "phlox/process/kept_rights.h"

#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <cstdlib>

namespace phlox::process {
namespace {

// include/uapi/linux/capability.h; as numbers, because our headers may be too old.
constexpr unsigned kPerfmon = 38, kBpf = 39, kCheckpointRestore = 40;
// From this kernel version on, the holder of a BPF map may read it, whatever kernel.unprivileged_bpf_disabled
// is (kernel/bpf/syscall.c).
constexpr int kMapsForHolders = 6;
constexpr unsigned kKept[] = {
    CAP_SYS_PTRACE,       // memory and /proc of other users' processes
    CAP_DAC_READ_SEARCH,  // their files, for names
    kCheckpointRestore,   // /proc/PID/map_files
    CAP_SYSLOG,           // names of kernel functions
    CAP_KILL,             // forward signals to a program that runs as another user
    // To write the recording in another user's folder, with the caller as its owner.
    CAP_DAC_OVERRIDE,
    CAP_CHOWN,
    CAP_FOWNER,
    // To use files with the rights of the caller, or of the target's user (base/file_user.h).
    CAP_SETUID,
    CAP_SETGID,
    // One of our threads samples a process that the kernel's capture cannot walk.
    CAP_SYS_NICE,
    CAP_IPC_LOCK,
    kPerfmon,
};

bool may_need_bpf() {
  utsname host{};
  ::uname(&host);
  return std::atoi(host.release) < kMapsForHolders;
}

}  // namespace

uint64_t kept_capabilities() {
  uint64_t set = 0;
  for (const unsigned one : kKept) set |= uint64_t{1} << one;
  if (may_need_bpf()) set |= uint64_t{1} << kBpf;
  return set;
}

void give_up_other_capabilities() {
  __user_cap_header_struct head{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct sets[2] = {};
  if (::syscall(SYS_capget, &head, sets) != 0) return;
  const uint64_t kept = kept_capabilities();
  for (int half = 0; half < 2; ++half) {
    const auto mask = static_cast<uint32_t>(kept >> (32 * half));
    sets[half].effective &= mask;
    sets[half].permitted &= mask;
    sets[half].inheritable &= mask;
  }
  ::syscall(SYS_capset, &head, sets);
  // Otherwise every program that root starts would get them all again.
  ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
}

}  // namespace phlox::process
