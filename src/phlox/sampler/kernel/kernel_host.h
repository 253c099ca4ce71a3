// The places of kernel data that the program reads besides the structs that libbpf finds. For a per-CPU
// variable, the kernel's types (BTF) have its offset among those; its address is hidden, so it is given as
// the distance from another one, which the program knows.
#pragma once

#include "phlox/sampler/kernel/wire.h"

namespace phlox::sampler {

// 0: not known. Only if phlox has the capture inside the kernel.
kernel_host read_kernel_host();

}  // namespace phlox::sampler
