// Turns the native half of a sample into one stack: unwinds the copied bytes, merges the Python frames by
// address, and interns the result. Called by the consumer, in the recorder's thread; names nothing.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "phlox/base/machine.h"
#include "phlox/memory/remote_memory.h"
#include "phlox/profile/interner.h"
#include "phlox/profile/native_module.h"
#include "phlox/profile/sink.h"
#include "phlox/sampler/assemble/address_space.h"
#include "phlox/sampler/assemble/merge.h"
#include "phlox/sampler/observe/native_sample.h"
#include "phlox/unwind/unwinder.h"

namespace phlox::sampler {

struct Identities;

// The quality of the native halves.
struct NativeCounts {
  uint64_t samples = 0;    // with a native half
  uint64_t whole = 0;      // the walk reached the thread's start, and every Python frame has its place
  uint64_t restarted = 0;  // resumed at a Python entry; a part between is not known
  uint64_t cut = 0;        // the walk ended before the thread's start
  uint64_t unmerged = 0;   // some Python frames have no place of their own
  uint64_t frames = 0;
  uint64_t prologues = 0;  // an innermost loop frame without Python frames yet

  NativeCounts& operator+=(const NativeCounts& o) {
    samples += o.samples, whole += o.whole, restarted += o.restarted, cut += o.cut, unmerged += o.unmerged;
    frames += o.frames, prologues += o.prologues;
    return *this;
  }
};

using profile::NativeFile;
using profile::NativeModule;

class NativeStacks {
 public:
  NativeStacks(pid_t pid, memory::RemoteMemory& memory, Identities& identities, profile::Sink& sink,
               std::string cache_folder);

  struct Stack {
    profile::StackId id;
    bool cut = false;
  };
  // `python`: frames of the sample's locations, root first (none: one that shows no frame).
  Stack merge(const NativeSample& sample, std::span<const profile::FrameId> python);

  const NativeCounts& counts() const { return counts_; }
  // The modules of frames, and the files of JIT compilers. Call once.
  std::vector<NativeModule> take_modules();
  // Modules that frames refer to since it was last called, in copies; `with_jit`: also the files of JIT
  // compilers, if frames are in no module.
  std::vector<NativeModule> fresh_modules(bool with_jit);
  bool has_fresh_code() const { return code_.size() > code_handed_; }

 private:
  NativeModule module_of(uint32_t number, Descriptor file, const std::shared_ptr<Descriptor>& root) const;
  void put_jit_files(std::vector<AddressSpace::JitDump> dumps, Descriptor perf_map,
                     std::vector<NativeModule>& out) const;
  profile::ModuleId module_id(uint32_t number);
  void unwind(const NativeSample& sample);
  void refresh_now_and_then();
  bool is_lost() const;
  bool found_new_code();
  void group(const NativeSample& sample, uint32_t positions);
  void pass_over_greenlet();
  bool mark_loops();
  void mark_anchored_loops();
  // What a walk of a sample has found.
  struct Walk {
    bool whole = false;      // it reached the thread's start
    bool greenlet = false;   // it reached a greenlet's
    bool restarted = false;  // somewhere it resumed at a Python entry
  };
  void count(const Walk& walk);
  profile::StackId intern(const NativeSample& sample, std::span<const profile::FrameId> python,
                          const Walk& walk);
  // Whether it is in greenlet's library.
  bool of_greenlet(const unwind::NativeFrame& frame);
  void learn_distance();
  profile::FrameId frame_of(const unwind::NativeFrame& frame, bool loop);
  profile::FrameId kernel_frame(uint64_t address, bool exact);
  profile::FrameId marker(const char* text);

  pid_t pid_;
  Nanoseconds pause_;  // before the maps are read again for a stack without a module
  memory::RemoteMemory& memory_;
  Identities& identities_;
  profile::Sink& sink_;
  AddressSpace space_;
  unwind::Unwinder unwinder_;
  unwind::NativeStack native_;
  std::vector<PythonGroup> groups_;  // innermost first
  std::vector<unwind::Restart> restarts_;
  std::vector<uint8_t> is_loop_;
  Merged merged_;
  std::vector<profile::FrameId> frames_;  // of native_, as interned
  uint32_t number_ = 0;              // of the address space, among those of the recording; 0: not used yet
  std::set<profile::FrameId> code_;  // frames in no module
  size_t code_handed_ = 0;           // how many of them there were when fresh_modules() handed them on
  std::vector<uint32_t> fresh_;      // modules
  std::unordered_map<uint64_t, profile::FrameId> known_;  // by address looked up, how it was found, loop
  uint64_t known_generation_ = 0;
  std::vector<profile::ModuleId> module_ids_;                    // by the number in space_
  profile::ModuleId kernel_;                                     // none: not met yet
  std::unordered_map<uint64_t, profile::FrameId> known_kernel_;  // by address
  // cfa - anchor of the interpreter loop: constant in one build. 0: not learnt yet; -1: it is not constant.
  int64_t distance_ = 0;
  int32_t fp_offset_ = 0;
  // Always the same on x86-64. On aarch64 each function has its own place for it, and a word of any other
  // place could be the address of code, too; 0: not known.
  int32_t ra_offset_ = kOnAarch64 ? 0 : -8;
  unsigned agreed_ = 0;
  NativeCounts counts_;
};

}  // namespace phlox::sampler
