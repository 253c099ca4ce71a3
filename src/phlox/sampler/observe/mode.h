// What was requested of a source of samples, and granted.
#pragma once

#include <cstdint>
#include <string_view>

namespace phlox::sampler {

// The requested mode: how a running thread is held while its Python half is read. A thread that is blocked in
// a system call is read as it is, and is never stopped.
enum class Mode : uint8_t {
  automatic,  // in the kernel if possible; otherwise as no_kernel
  no_kernel,  // on its CPU; by a stop of that one thread if we may not use the CPU
  same_cpu,   // on its CPU; read as it runs, unproved, if we may not use the CPU
  ptrace,     // stopped for microseconds
  hands_off,  // not held: read as it runs, unproved
  kernel,     // not by us: a program inside the kernel reads in the interrupt (sampler/kernel)
};
constexpr bool goes_to_its_cpu(Mode mode) {
  return mode != Mode::ptrace && mode != Mode::hands_off;
}
constexpr bool may_stop(Mode mode) {
  return mode != Mode::same_cpu && mode != Mode::hands_off;
}

// The requested source. automatic: the first of perf and ptrace that the host allows, and always syscall for
// blocked threads. kernel: the capture inside the kernel, with everything else (Mode::kernel).
enum class NativeSource : uint8_t { automatic, perf, ptrace, syscall, kernel };
std::string_view describe(NativeSource source);

enum class SchedulingClass {
  real_time,    // SCHED_FIFO 1, reset on fork
  short_slice,  // ordinary class, slice of 0.1 ms: gets the CPU before the running thread (Linux 6.12+)
  ordinary,     // ordinary class, nothing special granted
};
std::string_view describe(SchedulingClass scheduling);

}  // namespace phlox::sampler
