// The records on the ring from the workers to the consumer, in the recorder's thread. Plain bytes, this
// process only; objects that own memory travel beside them (handover.h).
#pragma once

#include <sys/types.h>

#include <cstdint>

#include "phlox/base/clock.h"
#include "phlox/process/open_file.h"
#include "phlox/process/waits_for.h"
#include "phlox/profile/model.h"

namespace phlox::sampler {

// A frame as the sampler knows it: its code object (numbered in the order of first appearance) and the place
// in it.
struct CodeLocation {
  uint32_t code = 0;
  int32_t instruction = 0;  // as python::line_of needs it: bytes from the first instruction, or f_lasti
  friend bool operator==(const CodeLocation&, const CodeLocation&) = default;
};
// CodeLocation.code of a marker: this many frames (CodeLocation.instruction) are left out here.
inline constexpr uint32_t kFramesLeftOut = 0xffffffff;
// CodeLocation.code of a marker at the root of a detached stack: the callers of these frames are not known.
inline constexpr uint32_t kCallersUnknown = 0xfffffffe;
// CodeLocation.code of a frame whose code object was not read: more were new at once than are kept.
inline constexpr uint32_t kNotRead = 0xfffffffd;
// CodeLocation.code in place of the stack of a wait that was only counted.
inline constexpr uint32_t kNotWalked = 0xfffffffc;
// CodeLocation.code in place of a stack: the thread ran between two samples, and none found it running.
inline constexpr uint32_t kNotSeen = 0xfffffffb;

enum class Rejected : uint8_t { no, moved, unreadable, broken };

enum class RecordKind : uint32_t {
  sample,
  code,
  codes_gone,
  thread,
  thread_end,
  waker,
  wait_target,
  code_file,
  signal,
  trace
};

// The native frames of a sample. same: those of the last sample. kept: those of the sample with this
// native_id, if they were the last to be kept in the same place.
enum class NativePart : uint8_t { none, same, fresh, kept };
enum class NativePlace : uint8_t { none, awake, asleep, queued };

// The times of a sample; the only part in which joined samples differ.
struct SampleTime {
  Nanoseconds end = 0;   // of the last sample
  Nanoseconds wall = 0;  // since the last record
  Nanoseconds cpu = 0;
  // The part of `wall` in which it ran or waited for a CPU (time_split.h); below zero: not known, or not
  // read: all of the time has the state in which it was found.
  Nanoseconds ran = -1;
  Nanoseconds queued = -1;  // the part of `ran` in which it waited for a CPU; below zero: not separate
  // Blocked: since when it is known to be in this call; 0: several similar waits.
  Nanoseconds wait_since = 0;
  uint32_t samples = 0;
};

// How the kernel's thread was found.
struct SampleState {
  profile::CpuState cpu_state = profile::CpuState::unknown;
  profile::Quality quality = profile::Quality::ok;
  Rejected rejected = Rejected::no;
  // Runnable: its place says nothing of where it used CPU time since the last sample.
  bool ran_elsewhere = false;
  int16_t cpu_number = -1;
  int16_t system_call = -1;
  uint32_t code_file = 0;  // running: the file of its own code, by the number of its record; 0: not known
  uint32_t waker = 0;      // blocked: the waker, by the number of its record; 0: not known
  // Blocked: the wait target. As reported with the wait, by the number of its record; 0: from its call.
  uint32_t wait_target = 0;
  process::WaitsFor waits_for;
  uint32_t trace = 0;  // the span that it works for, by the number of its record; 0: none, or not known
  friend bool operator==(const SampleState&, const SampleState&) = default;
};

// What the interpreter says of it.
struct SamplePython {
  profile::GilState gil_state = profile::GilState::unknown;
  bool collecting = false;
  friend bool operator==(const SamplePython&, const SamplePython&) = default;
};

// The stack is the first `keep` locations of the thread's last sample, then `fresh` new ones.
struct SampleStack {
  uint32_t keep = 0;
  uint32_t fresh = 0;
};

struct SampleNative {
  NativePart part = NativePart::none;
  NativePlace place = NativePlace::none;  // fresh: the stack is kept there
  uint32_t id = 0;
  friend bool operator==(const SampleNative&, const SampleNative&) = default;
};

// One sample of a thread, or several equal ones. Followed by `stack.fresh` CodeLocations, root first, and if
// `native.part` is fresh, by the native half (native_sample.h).
struct ThreadSample {
  RecordKind kind = RecordKind::sample;
  uint32_t thread = 0;
  bool part = false;  // of the time before a sample, with a stack of its own; not a sample itself
  SampleTime time;
  SampleState state;
  SamplePython python;
  SampleStack stack;
  SampleNative native;
};

// A sample of a thread whose last one was at `before`.
inline ThreadSample sample_at(uint32_t thread, Nanoseconds now, Nanoseconds before) {
  ThreadSample sample;
  sample.thread = thread;
  sample.time.end = now;
  sample.time.wall = now - before;
  sample.time.samples = 1;
  return sample;
}

// A sample that finds the thread as `last` did, without having run since. `turns`: since that one; each would
// have found the same.
inline ThreadSample same_sample(const ThreadSample& last, Nanoseconds now, Nanoseconds before,
                                uint64_t turns) {
  ThreadSample sample = last;
  sample.time.end = now;
  sample.time.wall = now - before;
  sample.time.cpu = 0;
  if (sample.time.ran > 0) sample.time.ran = 0;
  if (sample.time.queued > 0) sample.time.queued = 0;
  sample.time.samples = static_cast<uint32_t>(turns);
  sample.stack.fresh = 0;
  return sample;
}

// Equal samples are held back for at most this long (a killed recorder loses half a second at most).
inline constexpr Nanoseconds kHoldBack = kSecond / 10;

// A further sample that differs from `held` only in its times is sent with it.
inline void join(ThreadSample& held, const ThreadSample& sample) {
  held.time.end = sample.time.end;
  held.time.wall += sample.time.wall;
  held.time.cpu += sample.time.cpu;
  if (held.time.ran >= 0 && sample.time.ran >= 0) held.time.ran += sample.time.ran;
  if (held.time.queued >= 0 && sample.time.queued >= 0) held.time.queued += sample.time.queued;
  held.time.samples += sample.time.samples;
  if (held.time.wait_since != sample.time.wait_since) held.time.wait_since = 0;
}

// A new code object (or another one at a known address). Hands over Handed::code.
struct CodeRecord {
  RecordKind kind = RecordKind::code;
  uint32_t code = 0;
  uint32_t retired = 0;  // the earlier one at this address, which is gone; 0: none
};

// No code object sent so far is named by its number again: too many were kept. Hands over the entries of the
// capture, Handed::garbage.
struct CodesGoneRecord {
  RecordKind kind = RecordKind::codes_gone;
};

// Wakers: a known thread, or another by name. Followed by `size` CodeLocations, its stack at that moment,
// root first.
struct WakerRecord {
  RecordKind kind = RecordKind::waker;
  uint32_t waker = 0;
  uint32_t thread = 0;  // 0: `other`
  uint32_t size = 0;
  char other[32] = {};  // ends with a zero
};

// Wait targets. Followed by `size` bytes of a name (process::NamedFile::name; for a child its own).
struct WaitTargetRecord {
  enum class What : uint8_t { file, child, time };
  RecordKind kind = RecordKind::wait_target;
  uint32_t wait_target = 0;
  What what = What::file;
  uint32_t size = 0;
  int32_t others = 0;           // further descriptors of the same wait
  process::OpenFile file = {};  // of a child `process`
  Nanoseconds since = 0;        // for a child, when the wait began
};

// A library or extension module in which threads were found. Followed by `size` bytes of its path.
struct CodeFileRecord {
  RecordKind kind = RecordKind::code_file;
  uint32_t code_file = 0;
  uint32_t size = 0;
};

// A span of a trace that threads work for. Numbers only grow; the consumer knows the last kTracesKnown.
struct TraceRecord {
  RecordKind kind = RecordKind::trace;
  uint32_t trace = 0;
  profile::TraceIds ids;
};
inline constexpr uint32_t kTracesKnown = 8'192;

// A signal that ends a program by default: sent by a thread of this process, received by this process, or
// given to a thread of it.
struct SignalRecord {
  enum class What : uint8_t { sent, received, delivered };
  RecordKind kind = RecordKind::signal;
  uint32_t thread = 0;  // 0: not known
  Nanoseconds time = 0;
  pid_t other = 0;  // sent: the receiver; received: the sender; 0: none, or not known
  int16_t signal = 0;
  What what = What::received;
  bool by_kernel = false;  // received: no process sent it
  bool own_fault = false;  // received: for an instruction of its own
  bool ends = false;       // received: the kernel ends the process for it
  bool handled = false;    // delivered: the program has a function for it
  bool no_memory = false;  // delivered: memory had run out
  bool unseen = false;     // sent, delivered: no sample was taken
  char name[20] = {};      // of `other`; ends with a zero
};

struct ThreadRecord {
  RecordKind kind = RecordKind::thread;
  uint32_t thread = 0;
  pid_t tid = 0;
  uint64_t python_id = 0;
  int64_t interpreter = 0;
  Nanoseconds time = 0;
  Nanoseconds used = -1;  // CPU time until then, which belongs to no sample; below zero: not known
};

// The number of ended threads that are kept because they may still be named as wakers.
inline constexpr size_t kMostEnded = 4096;

struct ThreadEndRecord {
  RecordKind kind = RecordKind::thread_end;
  uint32_t thread = 0;
  Nanoseconds time = 0;
};

}  // namespace phlox::sampler
