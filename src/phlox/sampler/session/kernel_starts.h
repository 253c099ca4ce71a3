// Programs that were started by what is recorded and in which no Python was found yet, from the kernel's word
// of them: a child between vfork() and execve(), a shell, a Python that comes up. What they use until then is
// kept, and of those that ended before, whether they were a Python. Used by KernelSources alone; pure.
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

// What tells an executable from others, as the kernel has it.
struct Executable {
  uint64_t inode = 0;
  uint32_t device = 0;
  friend bool operator==(const Executable&, const Executable&) = default;
};

struct KernelStart {
  pid_t pid = 0, parent = 0;  // parent 0: not known
  uint32_t id = 0;            // kernel_process.id
  Nanoseconds begin = 0;      // of its first thread
  uint64_t told = 0;          // of what that ran, what belongs to a program before
  bool called_exec = false;   // the following are known
  Executable executable;
  std::string command_line;
  // When the first of its threads has ended.
  std::optional<kernel_exit> end;

  // By its first thread.
  uint64_t used() const { return end ? end->ran - std::min(told, static_cast<uint64_t>(end->ran)) : 0; }
  // By the name it was called by.
  bool looks_like_python() const;
};

class KernelStarts {
 public:
  // One of ours, before it calls execve.
  void add(pid_t pid, uint32_t id, Nanoseconds begin);
  // kernel_birth.plain
  void add(const kernel_birth& birth);
  // `recorded`: it was until now. Else `birth` is of what is begun with as this.
  void add(const kernel_exec& exec, bool recorded, const KernelStart& birth = {});
  // Of a thread of one of these; else false.
  bool take(const kernel_exit& exit);

  const KernelStart* find(pid_t pid) const;
  // A Python was found in it, or nobody wants it.
  void forget(uint32_t id);
  // Those that have ended since the last time, having called execve.
  std::vector<KernelStart> ended();

 private:
  std::unordered_map<uint32_t, KernelStart> starts_;
  std::unordered_map<pid_t, uint32_t> ids_;
  std::vector<KernelStart> ended_;
};

}  // namespace phlox::sampler
