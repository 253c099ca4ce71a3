// Where the running kernel keeps what the program in it reads beside the structs that libbpf finds. Of a
// variable that each CPU has, the kernel's types (BTF) say at which offset it lies among those; its address
// they hide, so it is told as the distance from another one, which the program knows.
#pragma once

#include "phlox/sampler/kernel/wire.h"

namespace phlox::sampler {

// What is not known is 0. Only where phlox has the capture inside the kernel.
kernel_host read_kernel_host();

}  // namespace phlox::sampler
