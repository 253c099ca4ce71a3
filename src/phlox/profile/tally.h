// Names of the counted facts, in one place: written by the sampler, read by report and pictures.
// Counts unless the name ends in _ns.
#pragma once

#include <string_view>

namespace phlox::profile::tally {

inline constexpr std::string_view kSamples = "samples";           // threads looked at, "did not run" included
inline constexpr std::string_view kTicks = "ticks";               // times the sampler looked at the process
inline constexpr std::string_view kTicksMissed = "ticks_missed";  // scheduled, but too late to be taken
inline constexpr std::string_view kRetried = "retried";           // further attempts at the same sample
inline constexpr std::string_view kDetached = "detached";         // chain without base
inline constexpr std::string_view kCut = "cut";                   // stack with a part left out
inline constexpr std::string_view kUnproved = "unproved";
inline constexpr std::string_view kRejectedMoved = "rejected_moved";  // ran while it was read, every attempt
inline constexpr std::string_view kRejectedUnreadable = "rejected_unreadable";  // memory that cannot be read
inline constexpr std::string_view kRejectedBroken = "rejected_broken";          // a chain that makes no sense
inline constexpr std::string_view kStops = "stops";  // of one thread each, by ptrace
inline constexpr std::string_view kStopRefused =
    "stop_refused";  // looks that a stop was wanted for and not had
inline constexpr std::string_view kCpuRefused =
    "cpu_refused";                                 // looks at threads on CPUs that phlox may not use
inline constexpr std::string_view kLost = "lost";  // looks that could not be taken over in time
// Frames without a name or a line, and stacks without some of their frames: the program has more of them than
// are held.
inline constexpr std::string_view kLeftOut = "left_out";
inline constexpr std::string_view kTargetTime = "target_time_ns";  // taken from its CPUs, wake-ups included
inline constexpr std::string_view kRecorderTime = "recorder_cpu_ns";  // CPU time of the whole recorder
inline constexpr std::string_view kAskedRate = "asked_rate_mhz";      // looks a second asked for, times 1000
// Where none was asked for: the most that are taken, times 1000.
inline constexpr std::string_view kMostRate = "most_rate_mhz";
// --max-overhead: millionths of a CPU that may be taken from the target.
inline constexpr std::string_view kMaxOverhead = "max_overhead_ppm";
// Looks with native frames, and how these came out (sampler/assemble/native_stacks.h).
inline constexpr std::string_view kNative = "native";
inline constexpr std::string_view kNativeWhole = "native_whole";
inline constexpr std::string_view kNativeRestarted = "native_restarted";
inline constexpr std::string_view kNativeCut = "native_cut";
inline constexpr std::string_view kNativeUnmerged = "native_unmerged";
// Threads that ran at once and had no perf event of their own, at the most.
inline constexpr std::string_view kNativeWithoutEvent = "native_without_event";
// Threads that the kernel runs inside a process for itself (io_uring, vhost), at the most. No sample is
// theirs.
inline constexpr std::string_view kKernelThreads = "kernel_threads";
inline constexpr std::string_view kElapsed = "elapsed_ns";

}  // namespace phlox::profile::tally
