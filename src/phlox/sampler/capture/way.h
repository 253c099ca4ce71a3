// What is asked for: how a thread that runs is made to stand still while its Python half is read. Whoever is
// blocked in a system call lies still as it is, and is never stopped.
#pragma once

#include <cstdint>

namespace phlox::sampler {

enum class Way : uint8_t {
  automatic,  // by the kernel where that may be had; else as no_kernel
  no_kernel,  // on its CPU; by a stop of that one thread where the CPU may not be entered
  same_cpu,   // on its CPU; read as it runs, unproved, where that may not be entered
  ptrace,     // stopped for microseconds
  hands_off,  // not at all: read as it runs, unproved
  kernel,     // not by us: a program inside the kernel reads in the interrupt (sampler/kernel)
};

}  // namespace phlox::sampler
