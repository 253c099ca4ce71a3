// Programs started by recorded ones in which no Python was found yet, from the kernel's reports: a child
// between vfork() and execve(), a shell, a Python that is coming up. Keeps their CPU time until then and, for
// those that ended before, whether they were a Python. Used only by KernelSources; pure.
#pragma once

#include <sys/types.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "phlox/base/clock.h"
#include "phlox/sampler/kernel/wire.h"

namespace phlox::sampler {

// Identifies an executable, by the kernel's data.
struct Executable {
  uint64_t inode = 0;
  uint32_t device = 0;
  friend bool operator==(const Executable&, const Executable&) = default;
};

struct KernelStart {
  pid_t pid = 0, parent = 0;  // parent 0: not known
  uint32_t id = 0;            // kernel_process.id
  Nanoseconds begin = 0;      // of its first thread
  uint64_t reported = 0;      // of its first thread's time, the part that belongs to an earlier program
  bool called_exec = false;   // the following members are known
  Executable executable;
  std::string command_line;
  // When its first thread has ended.
  std::optional<kernel_exit> end;

  // The CPU time of its first thread.
  uint64_t used() const { return end ? end->ran - std::min(reported, static_cast<uint64_t>(end->ran)) : 0; }
  // The name by which it was called.
  bool looks_like_python() const;
};

class KernelStarts {
 public:
  // A process of ours, before it calls execve.
  void add(pid_t pid, uint32_t id, Nanoseconds begin);
  // kernel_birth.plain
  void add(const kernel_birth& birth);
  // `recorded`: it was recorded until now. Otherwise `birth` is that of a new one.
  void add(const kernel_exec& exec, bool recorded, const KernelStart& birth = {});
  // A record about a thread of one of these; otherwise false.
  bool take(const kernel_exit& exit);

  const KernelStart* find(pid_t pid) const;
  // A Python was found in it, or it is not wanted.
  void forget(uint32_t id);
  // Those that called exec and have ended since the last call.
  std::vector<KernelStart> ended();

 private:
  std::unordered_map<uint32_t, KernelStart> starts_;
  std::unordered_map<pid_t, uint32_t> ids_;
  std::vector<KernelStart> ended_;
};

}  // namespace phlox::sampler
