// What `phlox doctor` looks at and tries, of the host and of a process. Only find() looks; who judges it
// (checkup.h) is given the values.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "phlox/base/result.h"
#include "phlox/cli/native_names.h"
#include "phlox/sampler/session/recorder.h"
#include "phlox/sampler/session/scheduling.h"
#include "phlox/symbols/debug_files.h"
#include "phlox/target/control_group.h"
#include "phlox/target/host_rights.h"
#include "phlox/target/process_state.h"
#include "phlox/target/rights_trial.h"

namespace phlox::cli {

struct Findings {
  // The process asked about; 0: none was, and the tries were made with a process of our own that is no child
  // of ours, as any other program of the same user is to phlox.
  pid_t pid = 0;
  std::string retry;  // "record -p 4711", for hints
  target::HostRights host;
  target::ControlGroups groups;  // ours

  // Of the process.
  std::optional<target::ProcessState> state;
  std::optional<target::ControlGroups> its_groups;
  std::string its_label;         // /proc/PID/attr/current
  std::optional<Error> refused;  // why it cannot be recorded, as record says it
  target::MemoryTrial memory;
  std::string python;  // "CPython 3.12.1 (default), found by …"
  target::FilesTrial files;
  std::vector<NativeRows::Missing> missing;  // names that its modules lack
  size_t modules = 0;                        // that were looked at for them

  // What was tried of the process or the stand-in.
  target::CpuTrial cpus;
  int stop = 0;  // errno of a stop, of a child of ours; 0: it works
  int bpf = 0;
  std::optional<Error> no_kernel_capture;  // why --way kernel cannot be had; none: it can
  sampler::SchedulingClass scheduling = sampler::SchedulingClass::ordinary;
  int real_time = 0;         // errno of SCHED_FIFO, where it was not granted
  bool schedstat = false;    // there, and it counts
  bool system_call = false;  // the file of that name may be read
  bool events = false;       // a perf event of a thread of it
  target::EventRefusal event_refusal;
  bool kernel_events = false;  // that see the kernel
  size_t most_events = 0;
  // What would hold running threads for --native.
  sampler::NativeSource native = sampler::NativeSource::ptrace;
  bool kernel_names = false;  // of /proc/kallsyms

  // A recording of less than a second that went nowhere; none: it could not be, or there was no need.
  std::optional<sampler::Progress> trial;
  std::string trial_failed;
};

// `pid`: none: of the host alone.
Findings find(std::optional<pid_t> pid, const symbols::DebugSearch& search);

}  // namespace phlox::cli
