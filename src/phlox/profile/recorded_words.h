// Keys of meta, and texts of marker frames and events, that the recorder writes and a view reads.
#pragma once

#include <string_view>

namespace phlox::profile {

// Meta, followed by the row of a process: the row of the process that it is a fork of, without an execve
// since then; the name that a pool gave it; its rank in a job ("RANK 3, LOCAL_RANK 1").
inline constexpr std::string_view kForkedFrom = "forked_from.";
inline constexpr std::string_view kProcessName = "process_name.";
inline constexpr std::string_view kProcessRank = "process_rank.";

// Meta, followed by the row of a process: what it says about itself, as OTEL_RESOURCE_ATTRIBUTES does
// ("service.name=shop,service.version=3").
inline constexpr std::string_view kResource = "resource.";

// The frame of a wait whose stack was not read.
inline constexpr std::string_view kWaitNotRead = "(a wait whose stack was not read)";
// The frame of CPU time of a thread that no sample found on a CPU: it belongs to no function.
inline constexpr std::string_view kBetweenSamples = "(ran between two samples)";
// The frame of the time that a process used before its first sample was possible: anything may have run.
inline constexpr std::string_view kBeforeItsPython = "(before its Python was up)";

// Texts of events of signals (model.h).
inline constexpr std::string_view kSignalByKernel = "the kernel", kSignalOwnFault = "(its own fault)",
                                  kSignalHandled = "handled", kSignalNoMemory = "out of memory";
// At the end of the text of signal_received: the kernel ends the process for it.
inline constexpr std::string_view kSignalEnds = ": ends it";
// At the end of the text of signal_sent and signal_delivered: no sample of the thread was taken then.
inline constexpr std::string_view kSignalUnseen = "; no sample";

}  // namespace phlox::profile
