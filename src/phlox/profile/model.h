// The model: interned samples. A row here is a row of the recording (docs/recording.md). `recording` writes
// and reads it; `exporters` and `report` turn it into files and text; none of them opens a process. Times are
// nanoseconds; start and end are CLOCK_MONOTONIC of the recording host.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "phlox/base/clock.h"
#include "phlox/base/id.h"

namespace phlox::profile {

using ProcessId = Id<struct ProcessTag>;
using ThreadId = Id<struct ThreadTag>;
using ModuleId = Id<struct ModuleTag>;
using FrameId = Id<struct FrameTag>;
using StackId = Id<struct StackTag>;
using SampleId = Id<struct SampleTag>;
using WakerId = Id<struct WakerTag>;
using WaitTargetId = Id<struct WaitTargetTag>;
using TraceTimeId = Id<struct TraceTimeTag>;

// The beginning of Process::mode for the capture inside the kernel. Waits are then the scheduler's
// own account.
inline constexpr std::string_view kInTheKernel = "in the kernel (BPF)";

struct Process {
  int32_t pid = 0;            // as the recorder's PID namespace counts
  int32_t namespace_pid = 0;  // as its own counts (the last number of NSpid); equal to pid outside containers
  std::optional<ProcessId> parent;
  std::string executable;      // path as the target sees it
  std::string command_line;    // arguments joined by one space
  std::string python_version;  // "3.12.1"; empty: no Python in it
  std::string python_build;    // "default", "debug", "free-threaded", ...
  // The strategy that found the interpreter: "symbol _PyRuntime in libpython3.12.so.1.0".
  std::string found_by;
  std::string mode;       // "same CPU (real time)", "ptrace stop", "hands off (unproved)", ...
  Nanoseconds start = 0;  // when it was first seen
  Nanoseconds end = 0;    // 0: still running when last seen
  std::string how_ended;  // "exit 0", "signal 9", "exec", "recording ended", ""

  // The executable or program, if known; may be empty.
  const std::string& command() const { return command_line.empty() ? executable : command_line; }
};

struct Thread {
  ProcessId process;
  int32_t tid = 0;          // kernel thread id; 0: unknown (a Python thread without one before 3.11)
  uint64_t python_id = 0;   // threading.get_ident(); 0: not a Python thread
  int64_t interpreter = 0;  // PyInterpreterState.id
  std::string name;         // threading's name; empty: not known
  std::string kernel_name;  // comm
  Nanoseconds start = 0;    // first seen
  Nanoseconds end = 0;      // 0: still there when last seen
};

// Names that the native frames of a module lack, and what would provide them.
struct MissingNames {
  bool functions = false;  // some have an address in place of a name
  bool lines = false;
  std::string why;
  std::string advice;  // a package, a command, a build flag
};

struct Module {
  std::string path;      // as the target sees it
  std::string build_id;  // hex; empty: none
  uint64_t load_bias = 0;
  std::optional<MissingNames> missing = {};
};

enum class FrameKind : uint8_t { python = 0, native = 1, kernel = 2, marker = 3 };

// Native: the role of this C function for the Python frames next to it.
enum class FrameRole : uint8_t {
  none = 0,
  interpreter_loop = 1,  // runs the Python frames below it
  trampoline = 2,        // of -X perf: belongs to the Python frame next to it
  // The C functions that Cython makes of one function of a .pyx file, in the order in which they call each
  // other. All have its name.
  cython_slot = 3,
  cython_wrapper = 4,
  cython_body = 5,
  jit_code = 6,  // represents code made at run time that has no name; its function names the compiler
};

struct Frame {
  FrameKind kind = FrameKind::python;
  std::string function;            // co_name; a marker's own text: "(… 19,744 frames left out …)"
  std::string qualified_name;      // co_qualname; equal to function where Python has none
  std::string file;                // co_filename as Python has it
  int32_t first_line = 0;          // co_firstlineno; 0: none
  int32_t line = 0;                // the line that ran; 0: none
  std::optional<ModuleId> module;  // native
  uint64_t address = 0;            // native: ImageAddress
  std::optional<FrameId> inlined_in;
  std::string found_by;  // native: "cfi", "frame pointer", ...
  FrameRole role = FrameRole::none;

  friend bool operator==(const Frame&, const Frame&) = default;
};

// A tree: parents come before children. The root of a stack has no parent.
struct Stack {
  StackId parent;
  FrameId frame;
};

// What the kernel did with the thread.
enum class CpuState : uint8_t { unknown = 0, running = 1, runnable = 2, blocked = 3 };
// The thread's relation to its interpreter's GIL. not_applicable: a free-threaded build, or not a Python
// thread.
enum class GilState : uint8_t { unknown = 0, none = 1, holds = 2, waits = 3, not_applicable = 4 };

// How good a stack is. Only `ok` and `cut` are proved and complete; `rejected` carries time without a stack.
enum class Quality : uint8_t {
  ok = 0,        // proved: the thread did not run while it was read, and the chain reaches its base
  cut = 1,       // proved, but a part of the stack is left out and replaced by a marker frame
  unproved = 2,  // read without a proof that nothing moved (hands off; no schedstat)
  detached = 3,  // proved, but the chain ends in a frame without a base (a generator between two states)
  rejected = 4,  // could not be read consistently: the stack is one marker frame that says why
};

// A waker, which ended a wait: a thread of the recording, with its place then; or another, by name.
struct Waker {
  ThreadId thread;    // none: not a recorded thread of the same process
  StackId stack;      // its stack at that moment; none: not known
  std::string other;  // without a thread: command and number of the process, "nginx (4711)"

  friend bool operator==(const Waker&, const Waker&) = default;
};

// A wait target (wait_target.h names them).
enum class WaitTargetKind : uint8_t {
  other,  // a kind that this phlox does not know
  file,
  socket,
  client,    // a socket that was accepted
  listener,  // a socket that accepts connections
  pipe,
  device,
  poll,  // several of these
  time,  // none of these: the wait was to end by itself
  process,
  object,  // of the kernel's own: eventfd, timerfd
};
struct WaitTarget {
  WaitTargetKind kind = WaitTargetKind::other;
  // A path; the accepting end's address of a socket; a process's command; the kernel's name for its object.
  std::string name;
  // The other end, as far as it is known: a client's address; a process, its command and number. For a
  // process its number.
  std::string other;

  friend bool operator==(const WaitTarget&, const WaitTarget&) = default;
};

// A distributed trace and one of its spans, as W3C Trace Context has them: the first byte first.
struct TraceIds {
  std::array<uint8_t, 16> trace{};
  std::array<uint8_t, 8> span{};

  friend auto operator<=>(const TraceIds&, const TraceIds&) = default;
};
// A time in which a thread worked for one span, as its process publishes it (OpenTelemetry's thread context,
// OTEP 4947): every sample in it found the same. The times of a thread do not overlap; between them it worked
// for no span, or that is not known.
struct TraceTime {
  ThreadId thread;
  TraceIds ids;
  Nanoseconds start = 0, end = 0;
};

// perf and others recorded that a thread was blocked, but not in which call.
inline constexpr int16_t kCallNotRecorded = -2;

// One thread over one interval of time in which stack and states were the same in every sample.
struct Sample {
  ThreadId thread;
  WakerId waker;             // blocked: the waker; none: the wait continued, or not known
  WaitTargetId wait_target;  // blocked: the wait target; none: not known
  // Running, in a recording without native frames: the library or extension module whose code ran; none: the
  // interpreter's, the kernel's, or not known.
  ModuleId code_file;
  Nanoseconds start = 0;  // of the interval
  Nanoseconds wall = 0;   // its length: measured time since the last sample, not the nominal interval
  // CPU time that the kernel accounted to the thread. The CPU time that a thread used before a sample found
  // it blocked is charged to the stack of the next sample that finds it running, not to its waiting.
  Nanoseconds cpu = 0;
  uint32_t samples = 1;     // number of samples in the interval
  int16_t cpu_number = -1;  // the last CPU; -1: unknown
  StackId stack;            // none: no Python frame (thread starting or ending)
  CpuState cpu_state = CpuState::unknown;
  GilState gil_state = GilState::unknown;
  bool collecting = false;  // the cyclic garbage collector ran
  // Blocked: the system call (number of the target's architecture); -1: none; kCallNotRecorded.
  int16_t system_call = -1;
  Quality quality = Quality::ok;
  // In a recording of several events: the number of the event, and its count (sampled_events.h).
  uint16_t event = 0;
  int64_t value = 0;
};
// A sample without an event number belongs to the first event.
constexpr uint16_t event_number(const Sample& sample) {
  return sample.event == 0 ? 1 : sample.event;
}

enum class EventKind : uint8_t {
  recording_start = 0,
  recording_end = 1,
  process_start = 2,
  process_end = 3,  // text: how it ended
  exec = 4,         // text: the new executable
  thread_start = 6,
  thread_end = 7,
  lost = 8,          // value: ns without samples; text: why
  rate_change = 9,   // value: the new rate in mHz; text: why
  mode_change = 10,  // text: the new mode
  // Calls that wait for a thread of a pool, from now on. value: how many; text: the pool's kind; thread: one
  // of its threads; none: the process has one pool of that kind
  calls_waiting = 11,
  // Signals that end a program by default (signals.h). value: the number of the signal.
  signal_sent = 12,       // process, thread: of the sender; text: the receiver, "python3 (4711)"
  signal_received = 13,   // process: the receiver; text: the sender, "gunicorn (4700)", or kSignal...
  signal_delivered = 14,  // thread: that the kernel gave it to; text: kSignal..., or empty
};

// A named span of the recording's time: a test, a request.
struct TimeLabel {
  Nanoseconds start = 0, end = 0;
  std::string text;
};

struct Event {
  EventKind kind = EventKind::lost;
  Nanoseconds time = 0;
  std::optional<ProcessId> process;
  std::optional<ThreadId> thread;
  int64_t value = 0;
  std::string text;
};

// A counted fact of the recording, one row for each (process, name): names in profile/counters.h.
struct Counter {
  ProcessId process;  // none: the recorder itself
  std::string name;
  int64_t value = 0;
};

}  // namespace phlox::profile
