#include "phlox/view/kernel_frames.h"

#include <algorithm>
#include <iterator>

namespace phlox::view {

namespace {

// Sorted. arch/x86/entry, arch/arm64/kernel/{entry-common,syscall}.c, kernel 6.18.
constexpr std::string_view kEntries[] = {
    "asm_exc_page_fault",
    "do_el0_svc",
    "do_syscall_64",
    "do_syscall_x64",
    "el0_svc",
    "el0_svc_common",
    "el0t_64_sync",
    "el0t_64_sync_handler",
    "entry_SYSCALL_64",
    "entry_SYSCALL_64_after_hwframe",
    "entry_SYSCALL_64_safe_stack",
    "invoke_syscall",
    "ret_from_fork",
    "ret_from_fork_asm",
    "x64_sys_call",
};
static_assert(std::is_sorted(std::begin(kEntries), std::end(kEntries)));

}  // namespace

bool is_kernel_entry(std::string_view function) {
  // "el0_svc_common.constprop.0"
  return std::binary_search(std::begin(kEntries), std::end(kEntries),
                            function.substr(0, function.find('.', 1)));
}

}  // namespace phlox::view
