// Where a thread's block in the C library (struct pthread) lies, which pthread_self() gives and Python's
// thread states name: how far below the thread pointer, which the kernel knows. On x86-64 both are the same
// address.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace phlox::process {

// From aarch64's instructions of pthread_self(): mrs, sub, ret. none: it has others.
std::optional<uint32_t> thread_block_of(std::span<const std::byte> pthread_self);

// none: no library of the process has pthread_self(), or it is not known.
std::optional<uint32_t> find_thread_block(pid_t pid);

}  // namespace phlox::process
