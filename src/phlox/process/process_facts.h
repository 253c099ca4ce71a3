// Plain facts of a process for the recording: its program, and its number in its own namespace.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>

namespace phlox::process {

struct ProcessFacts {
  pid_t namespace_pid = 0;   // the last number of NSpid; 0: not known
  std::string executable;    // as the target sees it, " (deleted)" removed
  std::string command_line;  // arguments joined by one blank
};
ProcessFacts read_process(pid_t pid);

// Where struct rseq lies in the target's C library, from what pthread_self() gives: by __rseq_offset (glibc
// 2.35+, in ld.so). none: no such library, or registration is off.
std::optional<int64_t> find_rseq_offset(pid_t pid);

}  // namespace phlox::process
