// The requested mode: how a running thread is held while its Python half is read. A thread that is blocked in
// a system call is read as it is, and is never stopped.
#pragma once

#include <cstdint>

namespace phlox::sampler {

enum class Mode : uint8_t {
  automatic,  // in the kernel if possible; otherwise as no_kernel
  no_kernel,  // on its CPU; by a stop of that one thread if we may not use the CPU
  same_cpu,   // on its CPU; read as it runs, unproved, if we may not use the CPU
  ptrace,     // stopped for microseconds
  hands_off,  // not held: read as it runs, unproved
  kernel,     // not by us: a program inside the kernel reads in the interrupt (sampler/kernel)
};

}  // namespace phlox::sampler
