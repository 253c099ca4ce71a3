#include "phlox/sampler/observe/mode.h"

namespace phlox::sampler {

std::string_view describe(NativeSource source) {
  switch (source) {
    case NativeSource::automatic:
      return "automatic";
    case NativeSource::perf:
      return "perf";
    case NativeSource::ptrace:
      return "ptrace";
    case NativeSource::syscall:
      return "syscall";
    case NativeSource::kernel:
      return "kernel";
  }
  return "";
}

std::string_view describe(SchedulingClass scheduling) {
  switch (scheduling) {
    case SchedulingClass::real_time:
      return "real time";
    case SchedulingClass::short_slice:
      return "ordinary class, short slice";
    case SchedulingClass::ordinary:
      return "ordinary class, leans towards moments of waiting";
  }
  return "";
}

}  // namespace phlox::sampler
