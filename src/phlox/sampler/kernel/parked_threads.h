// The threads of a process that are blocked when its recording inside the kernel begins, and their stacks,
// read from outside: the kernel's account of each, equal before and after, proves that it did not run
// meanwhile. Threads that run, or are awake again, are left to the kernel. Also reads single threads whose
// stack the kernel did not read. Reads the target, writes nothing into it.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "phlox/base/address.h"
#include "phlox/memory/remote_memory.h"
#include "phlox/process/thread_context.h"
#include "phlox/process/waits_for.h"
#include "phlox/profile/model.h"
#include "phlox/python/code_object.h"
#include "phlox/python/interpreter.h"
#include "phlox/sampler/kernel/wire.h"

namespace phlox::sampler {

struct ParkedThreads {
  struct Frame {
    size_t code = 0;  // index into codes
    int32_t instruction = 0;
  };
  struct Thread {
    pid_t tid = 0;
    uint64_t python_id = 0;
    int64_t interpreter = 0;
    int16_t system_call = -1;
    process::WaitsFor waits_for = {};
    profile::GilState gil = profile::GilState::none;
    profile::Quality quality = profile::Quality::ok;
    std::vector<Frame> frames;  // leaf first
    // After the first KERNEL_MAX_FRAMES / 2; if there are no more: at the root, where the stack is truncated.
    size_t left_out = 0;
    uint64_t state = 0;  // PyThreadState; 0: it runs no Python
    // As the kernel would have sent it; none: not requested, or not available.
    std::optional<kernel_native> native = {};
    std::vector<std::byte> native_bytes = {};
    std::optional<profile::TraceIds> trace = {};  // the span that it works for
  };
  std::vector<Thread> threads;
  std::vector<std::unique_ptr<python::CodeCapture>> codes;
  size_t not_read = 0;  // thread states beyond the limits of a search: whether they are parked is not known
};

// `native`: with native halves, and the threads that run no Python. `only`: these threads; empty: all.
// `traces`: where they publish the spans that they work for, if that is known.
ParkedThreads find_parked_threads(pid_t pid, const python::Interpreter& interpreter,
                                  memory::RemoteMemory& memory, bool native, std::span<const pid_t> only = {},
                                  const process::ThreadVariable* traces = nullptr);

}  // namespace phlox::sampler
