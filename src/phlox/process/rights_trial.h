// Tries the actions of a recording where a try does no harm: the kernel's own answer instead of a guess.
// Nothing of a target is stopped or changed; only a thread or a child of our own is moved, stopped or put
// into another class. Used by cli (doctor) before anything is recorded. Decides nothing.
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

#include "phlox/base/descriptor.h"
#include "phlox/process/maps.h"

namespace phlox::process {

// Each an errno; 0: it works.
struct MemoryTrial {
  int maps = 0;  // /proc/PID/maps, which needs less than reading does: PTRACE_MODE_READ
  int call = 0;  // process_vm_readv
  int file = 0;  // /proc/PID/mem
  bool readable() const { return maps == 0 && (call == 0 || file == 0); }
};
// Reads one word of it.
MemoryTrial try_memory(pid_t pid);

struct CpuTrial {
  std::vector<int> wanted;  // CPUs where its threads may run: sched_getaffinity of each
  // Of these, CPUs where a thread of ours may not (kernel/sched/syscalls.c: __sched_setaffinity: none of them
  // in our cpuset)
  std::vector<int> refused;
  std::vector<int> kept_free;  // of these, CPUs that we avoid: isolcpus=, nohz_full=
  int error = 0;               // of the first refused
};
CpuTrial try_cpus(pid_t pid);

// Seizes a child of ours (PTRACE_SEIZE, which stops no thread). errno; 0: it works.
int try_stop();

// Makes a BPF map of one word, and removes it. errno; 0: it works.
int try_bpf();

struct FilesTrial {
  size_t opened = 0;                    // files that are mapped executable, each the very one that is mapped
  std::vector<std::string> not_opened;  // as the target sees them
};
FilesTrial try_files(pid_t pid, const std::vector<Mapping>& maps);

// For a process: the files that are mapped executable.
std::vector<Module> code_modules_of(const std::vector<Mapping>& maps);

// A process of our own user that is no child of ours: to us it is like other programs of the same user. It
// waits, and ends with this object, or with us.
class Stranger {
 public:
  Stranger();
  ~Stranger();
  Stranger(const Stranger&) = delete;
  Stranger& operator=(const Stranger&) = delete;
  // 0: it could not be made.
  pid_t pid() const { return pid_; }

 private:
  Descriptor life_;  // the end of a pipe; it ends when this is closed
  pid_t pid_ = 0;
};

// Calls it on a thread made for this and ended with it, whatever it does to itself.
void on_a_thread_of_its_own(const std::function<void()>& call);

}  // namespace phlox::process
