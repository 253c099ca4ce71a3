// Turns a sample of a perf.data into one interned stack: the kernel's frames and a chain of frame pointers or
// of branches as they were recorded; a dump of registers and stack is unwound here. Truncated stacks are
// marked, and nothing is guessed.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "phlox/importers/kernel_names.h"
#include "phlox/importers/module_files.h"
#include "phlox/importers/perf_file.h"
#include "phlox/importers/perf_process.h"
#include "phlox/perf/records.h"
#include "phlox/profile/interner.h"
#include "phlox/profile/native_module.h"
#include "phlox/profile/sink.h"

namespace phlox::importers {

// The quality of the user-space part of stacks.
struct PerfStackCounts {
  uint64_t samples = 0;    // with a stack, of any kind
  uint64_t unwound = 0;    // from registers and a dump
  uint64_t whole = 0;      // of these: down to the thread's start
  uint64_t too_short = 0;  // the dump ended before the stack did
  size_t longest_dump = 0;
  // Ended at one of the 128 bytes below the stack pointer, which perf does not copy.
  uint64_t red_zone = 0;
  uint64_t no_rule = 0;         // ended in code without any description
  uint64_t senseless = 0;       // the words found there are invalid
  uint64_t chains = 0;          // recorded as chains
  uint64_t full_chains = 0;     // of these: as long as the recorder allowed
  uint64_t unknown_kernel = 0;  // samples with kernel frames that no symbol names
};

class PerfStacks {
 public:
  // All must outlive it.
  PerfStacks(ModuleFiles& files, KernelNames& kernel, profile::Interner& interner, profile::Sink& sink)
      : files_(files), kernel_names_(kernel), interner_(interner), sink_(sink) {}

  struct Stack {
    profile::StackId id;  // none: the sample has no stack and no address
    bool cut = false;
  };
  Stack stack_of(PerfProcess& process, const perf::SampleRecord& sample, const PerfEvent& event);

  const PerfStackCounts& counts() const { return counts_; }
  // Files of the modules of the frames, and those that were not found.
  std::vector<profile::NativeModule> modules();

 private:
  void add_kernel(uint64_t address, bool exact);
  void add_user(PerfProcess& process, RemoteAddress lookup, unwind::FoundBy found_by);
  void add_marker(const char* text);
  profile::FrameId marker(const char* text);
  // False: the chain has no user-space frames.
  bool add_chain(PerfProcess& process, const perf::SampleRecord& sample, const PerfEvent& event);
  void add_branches(PerfProcess& process, const perf::SampleRecord& sample);
  void add_unwound(PerfProcess& process, const perf::SampleRecord& sample);
  profile::FrameId user_frame(PerfProcess& process, RemoteAddress lookup, unwind::FoundBy found_by);
  profile::FrameId python_function(const profile::Frame& frame);
  profile::FrameId fresh_user_frame(PerfProcess& process, RemoteAddress lookup, unwind::FoundBy found_by);
  profile::ModuleId module_of(uint32_t file, uint64_t bias);
  profile::StackId interned(pid_t tid);

  ModuleFiles& files_;
  KernelNames& kernel_names_;
  profile::Interner& interner_;
  profile::Sink& sink_;
  PerfStackCounts counts_;
  std::vector<profile::FrameId> frames_;  // of the current sample, innermost first
  bool cut_ = false;
  bool with_python_ = false;           // one of them is a function of Python
  std::vector<bool> is_python_frame_;  // by id
  // From the root on, a thread's last stack; threads that share a slot share it.
  struct Step {
    profile::FrameId frame;
    profile::StackId id;
  };
  std::array<std::vector<Step>, 64> last_;
  unwind::NativeStack native_;
  std::vector<profile::ModuleId> module_ids_;  // by the file's number
  uint32_t last_module_ = 0;
  profile::ModuleId kernel_;
  std::unordered_map<uint64_t, profile::FrameId> known_kernel_;  // by address
  std::unordered_map<const char*, profile::FrameId> markers_;
};

}  // namespace phlox::importers
