// How a recording samples: decided from what is requested, and what the host and the process grant. The
// recorder finds that out while it samples, doctor tries it before. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "phlox/sampler/observe/mode.h"

namespace phlox::sampler {

struct Wishes {
  Mode mode = Mode::automatic;
  std::optional<NativeSource> native;  // none: no native frames
};

// What a better plan would need, the most important first.
enum class Right : uint8_t { kernel, proof, stops, priority, cpus };

struct Rights {
  bool kernel = false;  // sampling inside the kernel
  bool proof = false;   // the kernel counts how often a thread is scheduled in (schedstat)
  bool stops = false;   // ptrace
  bool events = false;  // perf events of the process's threads
  bool kernel_events = false;
  SchedulingClass scheduling = SchedulingClass::ordinary;
  enum class Cpus : uint8_t { all, some, none } cpus = Cpus::all;  // of the program's, for phlox
};

// How a running thread is held while it is read.
enum class Holding : uint8_t { interrupt, its_cpu, stop, nothing };

struct Plan {
  Holding holding = Holding::nothing;
  std::optional<Holding>
      elsewhere;  // on CPUs that phlox may not use; none: it may use them all, or needs none
  SchedulingClass scheduling = SchedulingClass::ordinary;
  bool proof = false;
  bool by_perf = false;  // woken by a perf event
  std::optional<NativeSource> native;
  bool kernel_frames = false;
  std::vector<Right> lacks;  // what would make it better
};
Plan plan_for(const Rights& rights, const Wishes& wishes);

// As outputs name it: "same CPU (real time)", "ptrace stop", "hands off (unproved)", "in the kernel (BPF)".
std::string describe(const Plan& plan);

// ---- parts of the decision, for those who find the rights out one by one

// Whether sampling inside the kernel comes first.
bool wants_kernel(const Wishes& wishes);
// A mode that stops no thread also rules out stops for the native half, unless they were requested.
std::optional<NativeSource> asked_source(const Wishes& wishes);
// The source that holds running threads for their native half; syscall: none does.
NativeSource running_source(NativeSource asked, const Rights& rights);
// Empty: they are there.
std::string_view why_no_kernel_frames(bool events, bool kernel_events);

}  // namespace phlox::sampler
