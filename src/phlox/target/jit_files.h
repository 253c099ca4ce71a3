// Files in which a JIT compiler says what it compiled, for symbols::JitMap: opened beneath the target's own
// root, through no link that leads out of it, and only when they belong to the target's user or to root:
// /tmp is everybody's, and the number of a process is no secret.
#pragma once

#include <sys/types.h>

#include <optional>

#include "phlox/base/descriptor.h"
#include "phlox/base/file_user.h"
#include "phlox/target/maps.h"

namespace phlox::target {

// Whose the process is (the effective user), and what its own namespace counts it as.
struct JitWriter {
  uid_t user = 0;
  pid_t own_pid = 0;
  std::optional<FileUser> reader = {};  // whose rights its files are opened with; none: ours
};
std::optional<JitWriter> jit_writer(pid_t pid);

// /tmp/perf-PID.map, by the number that its writer knows itself by.
Descriptor open_perf_map(const Descriptor& root, const JitWriter& writer);
// A jitdump is known by its mapping.
Descriptor open_jitdump(pid_t pid, const Module& module, const Descriptor& root, const JitWriter& writer);

}  // namespace phlox::target
