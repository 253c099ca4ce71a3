// The other end of the ring: turns records into interned rows and passes them to a Sink. Runs in the
// recorder's thread, which is of the ordinary class and has time; decodes code objects and line tables, keeps
// each thread's stack, and opens no process.
#pragma once

#include <sys/types.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "phlox/profile/interner.h"
#include "phlox/profile/sink.h"
#include "phlox/profile/spans.h"
#include "phlox/profile/trace_spans.h"
#include "phlox/python/code_object.h"
#include "phlox/python/layout.h"
#include "phlox/sampler/assemble/native_stacks.h"
#include "phlox/sampler/assemble/shared_files.h"
#include "phlox/sampler/assemble/time_split.h"
#include "phlox/sampler/assemble/wait_target_files.h"
#include "phlox/sampler/observe/records.h"
#include "phlox/sampler/observe/ring.h"

namespace phlox::sampler {

// Ids of one recording: shared by every program that the recorded process runs one after the other (execve).
struct Identities {
  explicit Identities(profile::Sink& sink) : interner(sink), spans(sink), traces(sink) {}
  // Emits the intervals that have grown.
  void flush() {
    spans.flush();
    traces.flush();
  }
  profile::Interner interner;
  profile::Spans spans;
  profile::TraceSpans traces;
  uint32_t next_thread = 1;
  uint32_t next_module = 1;
  std::map<std::string, profile::ModuleId> modules;  // by what identifies a file and whoever may read it
  uint32_t next_address_space = 1;
  SharedFiles files;
};

class Consumer {
 public:
  // Names a new thread, if it can be named by now (Thread::kernel_name, name).
  using NameThread = std::function<void(profile::Thread&)>;

  Consumer(const python::Layout& layout, profile::ProcessId process, profile::Sink& sink,
           Identities& identities, NameThread name_thread);

  // From now on, merges native halves into the stacks. `stacks` must outlive this.
  void with_native(NativeStacks& stacks) { native_ = &stacks; }

  // From now on, names wait targets. `files` must outlive this.
  void with_wait_targets(WaitTargetFiles& files) { files_ = &files; }

  // The thread with this id is the process's first. `used`: called when it has ended: the CPU time that it
  // had used, if known.
  void with_end(pid_t process, std::function<std::optional<Nanoseconds>()> used);
  // The CPU time of that thread before its first sample belongs to the recording since then: a program that
  // came up.
  void with_start(Nanoseconds start) { started_ = start; }
  // The process has ended without a sample; this is its CPU time.
  void put_unseen(Nanoseconds start, Nanoseconds end, Nanoseconds used);
  bool has_begun() const { return has_begun_; }

  // Empties the ring, or stops after the record at which it is late: a writer may be faster than we are.
  // Intervals that still grow are in Identities: flush() them before a commit.
  void drain(
      Ring& ring, const std::function<bool()>& is_late = [] { return false; });
  // Empties the ring, and drops the records.
  void discard(Ring& ring);
  // Reports the pieces that wait for the account of a next sample. Call it at the end.
  void settle_all();
  // Samples that discard() dropped.
  uint64_t discarded() const { return discarded_; }
  // Frames without a line: the search would have taken too long.
  uint64_t without_line() const { return without_line_; }

  struct LiveThread {
    profile::ThreadId id;
    profile::Thread row;
  };
  // For naming threads later: python ids of those without a name.
  std::deque<LiveThread>& live_threads() { return live_; }
  void put_thread(const LiveThread& thread) { sink_.emit(thread.id, thread.row); }

 private:
  // With the span that the thread worked for, by the number of its record, as the same sample found it.
  struct TracedSample : profile::Sample {
    uint32_t trace = 0;
  };
  struct ThreadState {
    profile::ThreadId id;
    std::vector<profile::StackId> stacks;  // of each prefix of its stack, root first
    std::vector<profile::FrameId> frames;  // of each location; with native halves only
    profile::StackId merged;               // of the last sample with a native half
    bool merged_cut = false;
    // By NativePlace.
    struct Kept {
      uint32_t id = 0;
      NativeStacks::Stack stack;
    };
    std::array<Kept, 4> kept;
    TimeSplit time;
    StateSplit states;
    // The last samples that found it running, and asleep.
    std::optional<TracedSample> awake, asleep;
    bool taken_over = false;  // its row continues under another number of the ring
    pid_t tid = 0;
    std::optional<TracedSample> last;  // the last sample that was not rejected
    Nanoseconds until = 0;             // what there are rows for, up to the last sample of any kind
    // A piece in which it slept or waited for a CPU, until the kernel says which, and what came after it.
    std::vector<TracedSample> held;
    // The last wait whose target was looked up.
    profile::WaitTargetId wait_target;
    Nanoseconds wait_target_since = 0;
  };

  struct KnownCode {
    std::unique_ptr<python::Code> code;
    std::unordered_map<int32_t, profile::FrameId> frames;  // by instruction
  };

  void take(std::span<const std::byte> bytes, Ring& ring);
  void take_code(const CodeRecord& record, const Handed& handed);
  void put_unseen_time(profile::ThreadId thread, std::string what, Nanoseconds start, Nanoseconds end,
                       Nanoseconds used);
  void begin_thread(const ThreadRecord& record);
  bool take_over(const ThreadRecord& record);
  void end_thread(const ThreadEndRecord& record);
  void put_rest(const ThreadState& thread, Nanoseconds end);
  void take_waker(const WakerRecord& record, std::span<const std::byte> body);
  void take_wait_target(const WaitTargetRecord& record, std::span<const std::byte> body);
  bool take_as_one_of_first(const SignalRecord& record);
  void take_signal(const SignalRecord& record);
  void take_trace(const TraceRecord& record);
  void take_code_file(const CodeFileRecord& record, std::span<const std::byte> body);
  profile::WaitTargetId wait_target_of(const ThreadSample& record, ThreadState& thread);
  void take_sample(const ThreadSample& record, std::span<const std::byte> body);
  void put_split(const ThreadSample& record, ThreadState& thread, TracedSample& sample);
  void put_states(const ThreadSample& record, ThreadState& thread, TracedSample& sample);
  void put_row(const TracedSample& sample);
  void put_piece(ThreadState& thread, TracedSample piece, profile::CpuState state, Nanoseconds wall,
                 TracedSample& before);
  void emit_sample(ThreadState& thread, const TracedSample& sample);
  void settle(ThreadState& thread, Nanoseconds queued = 0);
  void take_native(const ThreadSample& record, std::span<const std::byte> body, ThreadState& thread,
                   TracedSample& sample);
  // none: a shim of the interpreter's own, no frame to show.
  profile::FrameId frame_of(CodeLocation location);
  profile::FrameId marker(std::string text);
  void move_between_samples(TracedSample& sample);

  const python::Layout& layout_;
  profile::ProcessId process_;
  profile::Sink& sink_;
  Identities& identities_;
  NameThread name_thread_;
  NativeStacks* native_ = nullptr;
  WaitTargetFiles* files_ = nullptr;
  NativeSample native_sample_;
  std::unordered_map<uint32_t, KnownCode> codes_;  // by number, as long as it may occur again
  size_t known_frames_ = 0;                        // of all codes_
  size_t searched_ = 0;                            // bytes of line tables, for this record
  uint64_t discarded_ = 0, without_line_ = 0;
  std::unordered_map<pid_t, uint32_t> sent_to_;  // signals sent, by receiver
  Nanoseconds signals_until_ = 0;                // of a share of one each 100 ms, what is used
  std::unordered_map<uint32_t, ThreadState> threads_;
  // Threads that may be named as wakers after their end.
  std::unordered_map<uint32_t, profile::ThreadId> ended_;
  std::unordered_map<uint32_t, profile::WakerId> wakers_;             // by number
  std::unordered_map<uint32_t, profile::WaitTargetId> wait_targets_;  // by number
  std::unordered_map<uint32_t, profile::ModuleId> code_files_;        // by number
  std::map<uint32_t, profile::TraceIds> traces_;                      // by number
  std::deque<LiveThread> live_;                                       // by id; ids ascend
  bool has_begun_ = false;
  // For the process's first thread.
  pid_t first_ = 0;
  std::function<std::optional<Nanoseconds>()> used_at_end_;
  std::optional<Nanoseconds> used_before_;
  std::optional<Nanoseconds> started_;
  Nanoseconds charged_ = 0;
};

}  // namespace phlox::sampler
