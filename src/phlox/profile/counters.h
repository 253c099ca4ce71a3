// Names of the counted facts, in one place: the sampler writes them, report and pictures read them. They are
// counts unless the name ends in _ns.
#pragma once

#include <string_view>

namespace phlox::profile::counters {

// Samples, those of threads that did not run included.
inline constexpr std::string_view kSamples = "samples";
inline constexpr std::string_view kTicks = "ticks";               // how often the sampler sampled the process
inline constexpr std::string_view kTicksMissed = "ticks_missed";  // due, but too late to be taken
inline constexpr std::string_view kRetried = "retried";           // further attempts at the same sample
inline constexpr std::string_view kDetached = "detached";         // chain without base
inline constexpr std::string_view kCut = "cut";                   // stack with a part left out
inline constexpr std::string_view kUnproved = "unproved";
// It ran while it was read, in every attempt.
inline constexpr std::string_view kRejectedMoved = "rejected_moved";
inline constexpr std::string_view kRejectedUnreadable = "rejected_unreadable";  // memory that cannot be read
inline constexpr std::string_view kRejectedBroken = "rejected_broken";  // a chain that cannot be right
inline constexpr std::string_view kStops = "stops";                     // of one thread each, by ptrace
inline constexpr std::string_view kStopRefused =
    "stop_refused";  // samples that needed a stop which was refused
inline constexpr std::string_view kCpuRefused =
    "cpu_refused";                                 // samples of threads on CPUs that phlox may not use
inline constexpr std::string_view kLost = "lost";  // samples that could not be fetched in time
// Frames without a name or a line, and stacks without some of their frames: the program has more of them than
// the limits allow.
inline constexpr std::string_view kLeftOut = "left_out";
inline constexpr std::string_view kTargetTime = "target_time_ns";  // taken from its CPUs, wake-ups included
inline constexpr std::string_view kRecorderTime = "recorder_cpu_ns";  // CPU time of the whole recorder
// Samples a second that were asked for, times 1000.
inline constexpr std::string_view kAskedRate = "asked_rate_mhz";
// If none were asked for: the highest rate, times 1000.
inline constexpr std::string_view kMostRate = "most_rate_mhz";
// --max-overhead: millionths of a CPU that may be taken from the target.
inline constexpr std::string_view kMaxOverhead = "max_overhead_ppm";
// Samples with native frames, and their quality (sampler/assemble/native_stacks.h).
inline constexpr std::string_view kNative = "native";
inline constexpr std::string_view kNativeWhole = "native_whole";
inline constexpr std::string_view kNativeRestarted = "native_restarted";
inline constexpr std::string_view kNativeCut = "native_cut";
inline constexpr std::string_view kNativeUnmerged = "native_unmerged";
// The maximum number of threads that ran at once without a perf event of their own.
inline constexpr std::string_view kNativeWithoutEvent = "native_without_event";
// The maximum number of threads that the kernel runs inside a process for itself (io_uring, vhost). They have
// no samples.
inline constexpr std::string_view kKernelThreads = "kernel_threads";
inline constexpr std::string_view kElapsed = "elapsed_ns";

}  // namespace phlox::profile::counters
