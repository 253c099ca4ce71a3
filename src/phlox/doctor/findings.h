// What `phlox doctor` checks and tries, on the host and on a process. Only find() does so; the code that
// judges (checkup.h) gets the values.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "phlox/base/result.h"
#include "phlox/naming/native_names.h"
#include "phlox/process/control_group.h"
#include "phlox/process/host_rights.h"
#include "phlox/process/process_state.h"
#include "phlox/process/rights_trial.h"
#include "phlox/sampler/session/recorder.h"
#include "phlox/sampler/session/scheduling.h"
#include "phlox/symbols/debug_files.h"

namespace phlox::doctor {

struct Findings {
  // The process that was named; 0: none, and the tries were made on a process of our own that is no child of
  // ours, so to phlox it is like any other program of the same user.
  pid_t pid = 0;
  std::string retry;  // "record -p 4711", for hints
  process::HostRights host;
  process::ControlGroups groups;  // ours

  // The process.
  std::optional<process::ProcessState> state;
  std::optional<process::ControlGroups> its_groups;
  std::string its_label;         // /proc/PID/attr/current
  std::optional<Error> refused;  // why it cannot be recorded, as record says it
  process::MemoryTrial memory;
  std::string python;  // "CPython 3.12.1 (default), found by …"
  process::FilesTrial files;
  std::vector<naming::NativeRows::Missing> missing;  // names that its modules lack
  size_t modules = 0;                                // the number of modules that were checked for them

  // What was tried on the process or its stand-in.
  process::CpuTrial cpus;
  int stop = 0;  // errno of a stop, on a child of ours; 0: it works
  int bpf = 0;
  std::optional<Error> no_kernel_capture;  // why --mode kernel is not possible; none: it is
  sampler::SchedulingClass scheduling = sampler::SchedulingClass::ordinary;
  int real_time = 0;         // errno of SCHED_FIFO, if it was not granted
  bool schedstat = false;    // exists, and counts
  bool system_call = false;  // the file of that name is readable
  bool events = false;       // a perf event of one of its threads
  process::EventRefusal event_refusal;
  bool kernel_events = false;  // events that include the kernel
  size_t most_events = 0;
  bool kernel_names = false;  // of /proc/kallsyms

  // A recording of less than a second that was written nowhere; none: it failed, or was not needed.
  std::optional<sampler::Progress> trial;
  std::string trial_failed;
};

// `pid`: none: only the host.
Findings find(std::optional<pid_t> pid, const symbols::DebugSearch& search);

}  // namespace phlox::doctor
