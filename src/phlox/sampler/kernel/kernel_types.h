// What is needed of the kernel's types (BTF, /sys/kernel/btf/vmlinux), picked in one pass over their six
// megabytes: libbpf would read and search them several times, which takes longer than anything else it does.
// Pure: bytes in, bytes out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "phlox/sampler/kernel/wire.h"

namespace phlox::sampler {

struct KernelTypes {
  // BTF with the structs of these names, and what they are made of. What a pointer points to is left out.
  std::vector<std::byte> structs;
  // The ids of these tracepoints' types among all of the kernel's.
  std::map<std::string, uint32_t, std::less<>> tracepoints;
  // For a per-CPU variable, the kernel's types have its offset among those; its address is hidden, so it is
  // given as the distance from another one, which the program knows.
  kernel_host host{};
};

// What is not found is missing in the result. Nothing is found in bytes that are no BTF, or an unknown one.
KernelTypes pick_kernel_types(std::span<const std::byte> btf,
                              const std::set<std::string, std::less<>>& structs,
                              const std::set<std::string, std::less<>>& tracepoints);

// The names of the structs and typedefs in a program's own types, without what follows "___": fields of the
// kernel's structs of these names may be used in it.
std::set<std::string, std::less<>> names_of_structs(std::span<const std::byte> btf);

}  // namespace phlox::sampler
