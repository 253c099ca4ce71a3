// Whether a process runs on a CPU that another program emulates: qemu-user, valgrind, box64. What the kernel
// knows of such a thread (its registers, its thread pointer) is the emulator's, not that of the program that
// it runs.
#pragma once

#include <sys/types.h>

#include <vector>

#include "phlox/base/address.h"
#include "phlox/process/maps.h"

namespace phlox::process {

// How often a dynamic loader (ld.so of glibc or musl) is mapped.
size_t loaders_in(const std::vector<Mapping>& maps);

// More dynamic loaders are mapped than the executable needs, and `address`, of a variable of the emulated
// program, is not in the executable. An emulator loads its program with that program's own loader.
bool is_emulated(pid_t pid, const std::vector<Mapping>& maps, RemoteAddress address);

}  // namespace phlox::process
