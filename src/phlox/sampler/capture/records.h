// What travels over the ring from the workers to the consumer, in the recorder's thread. Plain bytes, this
// process only.
#pragma once

#include <sys/types.h>

#include <cstdint>

#include "phlox/base/clock.h"
#include "phlox/profile/model.h"
#include "phlox/target/awaits.h"
#include "phlox/target/open_file.h"
#include "phlox/target/thread_probe.h"

namespace phlox::sampler {

// A frame as the sampler knows it: which code object (by the order in which they were met) and where in it.
struct CodeLocation {
  uint32_t code = 0;
  int32_t instruction = 0;  // as python::line_of wants it: bytes from the first instruction, or f_lasti
  friend bool operator==(const CodeLocation&, const CodeLocation&) = default;
};
// CodeLocation.code of a marker: so many frames (CodeLocation.instruction) are left out here.
inline constexpr uint32_t kFramesLeftOut = 0xffffffff;
// CodeLocation.code of a marker at the root of a detached stack: who called these frames is not known.
inline constexpr uint32_t kCallersUnknown = 0xfffffffe;
// CodeLocation.code of a frame whose code object was not read: more were new at once than are kept.
inline constexpr uint32_t kNotRead = 0xfffffffd;
// CodeLocation.code in place of the stack of a wait that was only counted.
inline constexpr uint32_t kNotWalked = 0xfffffffc;
// CodeLocation.code in place of a stack: the thread ran between two samples, and none found it running.
inline constexpr uint32_t kNotSeen = 0xfffffffb;

enum class Rejected : uint8_t { no, moved, unreadable, broken };

enum class RecordKind : uint32_t { look, code, codes_gone, thread, thread_end, wake, awaited, code_file };

// What a look says of the thread's native frames. same: they are those of the look before. kept: those that
// came with a look that had this native_id, if they were the last that were to be kept in the same place.
enum class NativePart : uint8_t { none, same, fresh, kept };
enum class NativePlace : uint8_t { none, awake, asleep, queued };

// One look at a thread, or several alike. Followed by `fresh` CodeLocations, root first: the stack is the
// first `keep` locations of this thread's look before, then these. After them, when `native` is fresh, the
// native half (native_capture.h).
struct LookRecord {
  RecordKind kind = RecordKind::look;
  uint32_t thread = 0;
  Nanoseconds time = 0;  // of the last look
  Nanoseconds wall = 0;  // since the look before
  Nanoseconds cpu = 0;
  // Of `wall`, how long it ran or waited for a CPU (time_split.h); below zero: not known, or not asked: all
  // of its time is what it was found in.
  Nanoseconds ran = -1;
  Nanoseconds queued = -1;  // of `ran`, how long it waited for a CPU; below zero: not to be kept apart
  uint32_t looks = 0;
  uint32_t wake = 0;  // blocked: who ended it, by the number of its record; 0: nobody that is known
  uint32_t keep = 0;
  uint32_t fresh = 0;
  int16_t cpu_number = -1;
  int16_t system_call = -1;
  profile::CpuState cpu_state = profile::CpuState::unknown;
  profile::GilState gil_state = profile::GilState::unknown;
  profile::Quality quality = profile::Quality::ok;
  Rejected rejected = Rejected::no;
  bool collecting = false;
  bool part = false;  // of the time before a look, with a stack of its own; no look by itself
  NativePart native = NativePart::none;
  NativePlace native_place = NativePlace::none;  // fresh: the stack is kept there
  uint32_t native_id = 0;
  uint32_t code_file =
      0;  // running: which file its own code was in, by the number of its record; 0: not known
  // Blocked: what for. As was told with the wait, by the number of its record; 0: as its call says.
  uint32_t awaited = 0;
  target::Awaits awaits;
  // Since when it is known to be in this call; 0: several waits that are alike.
  Nanoseconds wait_since = 0;
};

// Of a thread that is not blocked, by what it did since the look before. How long it waited for a CPU the
// kernel tells only when it runs again: held back by a quota, or by others for long, it shows neither. Then
// `is_off_cpu` is asked, which may cost more: whether what it ran is exact, since it stands in a queue.
inline profile::CpuState awake_state(const target::SchedStat& since, const auto& is_off_cpu) {
  if (since.run_ns != 0 || since.wait_ns != 0)
    return since.run_ns >= since.wait_ns ? profile::CpuState::running : profile::CpuState::runnable;
  return is_off_cpu() ? profile::CpuState::runnable : profile::CpuState::running;
}
// As long as it is held where it is.
inline profile::CpuState held_state(const target::SchedStat& now, const target::SchedStat& before) {
  return awake_state(now - before, [&now] { return !now.off(); });
}

// A thread that waits for a CPU was pre-empted where it stands, and has used the CPU there; unless it slept
// since the look before: then it was woken perhaps, and what it ran was elsewhere.
inline bool may_have_been_woken(Nanoseconds wall, const target::SchedStat& since) {
  return wall - static_cast<Nanoseconds>(since.run_ns + since.wait_ns) > wall / 8;
}

// A look at a thread, the one before having been at `before`.
inline LookRecord look_at(uint32_t thread, Nanoseconds now, Nanoseconds before) {
  LookRecord look;
  look.thread = thread;
  look.time = now;
  look.wall = now - before;
  look.looks = 1;
  return look;
}

// One that finds the thread as `last` did, not having run since. `turns`: since that one; each would have
// found the same, asked or not.
inline LookRecord same_look(const LookRecord& last, Nanoseconds now, Nanoseconds before, uint64_t turns) {
  LookRecord look = last;
  look.time = now;
  look.wall = now - before;
  look.cpu = 0;
  if (look.ran > 0) look.ran = 0;
  if (look.queued > 0) look.queued = 0;
  look.looks = static_cast<uint32_t>(turns);
  look.fresh = 0;
  return look;
}

// Looks alike are held back this long at most (a killed recorder loses half a second at most).
inline constexpr Nanoseconds kHoldBack = kSecond / 10;

// A further look that differs from `held` in its times only goes out with it.
inline void join(LookRecord& held, const LookRecord& look) {
  held.time = look.time;
  held.wall += look.wall;
  held.cpu += look.cpu;
  if (held.ran >= 0 && look.ran >= 0) held.ran += look.ran;
  if (held.queued >= 0 && look.queued >= 0) held.queued += look.queued;
  held.looks += look.looks;
  if (held.wait_since != look.wait_since) held.wait_since = 0;
}

// A code object met for the first time (or another one at an address met before). The consumer owns
// `capture`.
struct CodeRecord {
  RecordKind kind = RecordKind::code;
  uint32_t code = 0;
  uint32_t retired = 0;     // the one that lay at this address before and is no more; 0: none
  void* capture = nullptr;  // python::CodeCapture
};

// No code object sent so far is met again under its number: too many were kept. What the sampler held of them
// is the consumer's, which has the time to free it.
struct CodesGoneRecord {
  RecordKind kind = RecordKind::codes_gone;
  void* entries = nullptr;  // CodeCache::Entries
};

// Who ended waits: a thread that was met, or another by name. Followed by `size` CodeLocations, the stack
// that it had then, root first.
struct WakeRecord {
  RecordKind kind = RecordKind::wake;
  uint32_t wake = 0;
  uint32_t thread = 0;  // 0: `other`
  uint32_t size = 0;
  char other[32] = {};  // ends with a zero
};

// What waits were for. Followed by `size` bytes of a name (target::NamedFile::name; of a child its own).
struct AwaitedRecord {
  enum class What : uint8_t { file, child, time };
  RecordKind kind = RecordKind::awaited;
  uint32_t awaited = 0;
  What what = What::file;
  uint32_t size = 0;
  int32_t others = 0;          // descriptors that it was for beside
  target::OpenFile file = {};  // of a child `process`
  Nanoseconds since = 0;       // of a child, when it began to be waited for
};

// A library or extension module that threads were found in. Followed by `size` bytes of its path.
struct CodeFileRecord {
  RecordKind kind = RecordKind::code_file;
  uint32_t code_file = 0;
  uint32_t size = 0;
};

struct ThreadRecord {
  RecordKind kind = RecordKind::thread;
  uint32_t thread = 0;
  pid_t tid = 0;
  uint64_t python_id = 0;
  int64_t interpreter = 0;
  Nanoseconds time = 0;
  Nanoseconds used = -1;  // CPU time by then, which no look is charged with; below zero: not known
};

// Threads that have ended and may be named as wakers after that, as many as are kept.
inline constexpr size_t kMostEnded = 4096;

struct ThreadEndRecord {
  RecordKind kind = RecordKind::thread_end;
  uint32_t thread = 0;
  Nanoseconds time = 0;
};

}  // namespace phlox::sampler
