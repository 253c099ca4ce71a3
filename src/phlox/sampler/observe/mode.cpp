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

}  // namespace phlox::sampler
