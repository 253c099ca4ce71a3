// Files in which a JIT compiler lists its code, for symbols::JitMap. They are opened below the target's own
// root, through no link that leads out of it, and only if they belong to the target's user or to root:
// any user may write to /tmp, and the number of a process is no secret.
#pragma once

#include <sys/types.h>

#include <optional>

#include "phlox/base/descriptor.h"
#include "phlox/base/file_user.h"
#include "phlox/process/maps.h"

namespace phlox::process {

// The owner of the process (the effective user), and its number in its own namespace.
struct JitWriter {
  uid_t user = 0;
  pid_t own_pid = 0;
  std::optional<FileUser> reader = {};  // the user whose rights open its files; none: ours
};
std::optional<JitWriter> jit_writer(pid_t pid);

// /tmp/perf-PID.map, by its writer's own number.
Descriptor open_perf_map(const Descriptor& root, const JitWriter& writer);
// A jitdump is found by its mapping.
Descriptor open_jitdump(pid_t pid, const Module& module, const Descriptor& root, const JitWriter& writer);

}  // namespace phlox::process
