// The machine that this program is built for, by its ELF number; every process that it can read has the same.
#pragma once

#include "phlox/unwind/arch/aarch64.h"
#include "phlox/unwind/arch/x86_64.h"

namespace phlox::unwind {

#if defined(__aarch64__)
inline constexpr uint16_t kThisMachine = Aarch64::kMachine;
#else
inline constexpr uint16_t kThisMachine = X86_64::kMachine;
#endif

}  // namespace phlox::unwind
