// The program that runs in the kernel: compiled (cmake/bpf_object.cmake) and embedded
// (cmake/kernel_capture.cmake).
#pragma once

#include <string_view>

namespace phlox::sampler::kernel {

// An ELF object for BPF. Missing if PHLOX_KERNEL_CAPTURE_MISSING is defined.
std::string_view program();
std::string_view program_sha256();

}  // namespace phlox::sampler::kernel
