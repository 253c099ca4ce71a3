// How frames of the kernel are shown.
#pragma once

#include <string_view>

namespace phlox::view {

// Whether this function only leads from a system call's or a fault's entry to the function that handles it.
bool is_kernel_entry(std::string_view function);

}  // namespace phlox::view
