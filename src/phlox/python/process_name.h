// The name that multiprocessing, or billiard, gave this process: "ForkPoolWorker-1". Read outside the hot
// path; the target may run meanwhile, so a failure is normal: ask again later.
#pragma once

#include <string>

#include "phlox/base/address.h"
#include "phlox/memory/remote_memory.h"
#include "phlox/python/layout.h"
#include "phlox/python/read_fault.h"

namespace phlox::python {

inline constexpr size_t kMaxProcessNameBytes = 200;

// `interpreter`: its PyInterpreterState. Empty: it has none, or is the first process of its program.
Read<std::string> read_process_name(const Layout& layout, memory::RemoteMemory& memory,
                                    RemoteAddress interpreter);

}  // namespace phlox::python
