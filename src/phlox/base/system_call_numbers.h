// Numbers of the system calls in which a thread blocks, on both machines: only this table contains such
// numbers, except kernel/maps.bpf.h and kernel/wait_target.bpf.h, which repeat some for the kernel.
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <string_view>

#include "phlox/base/machine.h"

namespace phlox {

struct SystemCall {
  std::string_view name;
  int16_t x86_64 = -1;   // arch/x86/entry/syscalls/syscall_64.tbl; -1: not there
  int16_t aarch64 = -1;  // include/uapi/asm-generic/unistd.h; -1: not there

  constexpr int16_t number(bool on_aarch64) const { return on_aarch64 ? aarch64 : x86_64; }
};

inline constexpr SystemCall kSystemCalls[] = {
    {"read", 0, 63},
    {"write", 1, 64},
    {"readv", 19, 65},
    {"writev", 20, 66},
    {"pread64", 17, 67},
    {"pwrite64", 18, 68},
    {"preadv", 295, 69},
    {"pwritev", 296, 70},
    {"preadv2", 327, 286},
    {"pwritev2", 328, 287},
    {"open", 2, -1},
    {"openat", 257, 56},
    {"openat2", 437, 437},
    {"close", 3, 57},
    {"fsync", 74, 82},
    {"fdatasync", 75, 83},
    {"sync_file_range", 277, 84},
    {"msync", 26, 227},
    {"poll", 7, -1},
    {"ppoll", 271, 73},
    {"select", 23, -1},
    {"pselect6", 270, 72},
    {"epoll_wait", 232, -1},
    {"epoll_pwait", 281, 22},
    {"epoll_pwait2", 441, 441},
    {"futex", 202, 98},
    {"futex_waitv", 449, 449},
    {"nanosleep", 35, 101},
    {"clock_nanosleep", 230, 115},
    {"pause", 34, -1},
    {"rt_sigsuspend", 130, 133},
    {"rt_sigtimedwait", 128, 137},
    {"wait4", 61, 260},
    {"waitid", 247, 95},
    {"accept", 43, 202},
    {"accept4", 288, 242},
    {"connect", 42, 203},
    {"sendto", 44, 206},
    {"recvfrom", 45, 207},
    {"sendmsg", 46, 211},
    {"recvmsg", 47, 212},
    {"sendmmsg", 307, 269},
    {"recvmmsg", 299, 243},
    {"sendfile", 40, 71},
    {"splice", 275, 76},
    {"tee", 276, 77},
    {"vmsplice", 278, 75},
    {"copy_file_range", 326, 285},
    {"io_getevents", 208, 4},
    {"io_pgetevents", 333, 292},
    {"io_uring_enter", 426, 426},
    {"flock", 73, 32},
    {"fcntl", 72, 25},
    {"ioctl", 16, 29},
    {"getdents64", 217, 61},
    {"stat", 4, -1},
    {"fstat", 5, 80},
    {"lstat", 6, -1},
    {"newfstatat", 262, 79},
    {"statx", 332, 291},
    {"unlink", 87, -1},
    {"unlinkat", 263, 35},
    {"rename", 82, -1},
    {"renameat2", 316, 276},
    {"mkdir", 83, -1},
    {"mkdirat", 258, 34},
    {"mmap", 9, 222},
    {"munmap", 11, 215},
    {"mprotect", 10, 226},
    {"mremap", 25, 216},
    {"madvise", 28, 233},
    {"brk", 12, 214},
    {"sched_yield", 24, 124},
    {"mq_timedsend", 242, 182},
    {"mq_timedreceive", 243, 183},
    {"msgsnd", 69, 189},
    {"msgrcv", 70, 188},
    {"semop", 65, 193},
    {"semtimedop", 220, 192},
    {"getrandom", 318, 278},
    {"inotify_add_watch", 254, 27},
    {"fallocate", 285, 47},
    {"ftruncate", 77, 46},
    {"vfork", 58, -1},
    {"clone", 56, 220},
    {"clone3", 435, 435},
    {"execve", 59, 221},
    {"exit_group", 231, 94},
    {"restart_syscall", 219, 128},
    {"process_vm_readv", 310, 270},
    {"membarrier", 324, 283},
    {"userfaultfd", 323, 282},
};

// Looks up the table; an unknown name does not compile.
consteval SystemCall system_call(std::string_view name) {
  const auto* found = std::find_if(std::begin(kSystemCalls), std::end(kSystemCalls),
                                   [name](const SystemCall& call) { return call.name == name; });
  if (found == std::end(kSystemCalls)) throw "no such system call in the table";
  return *found;
}

template <class Calls>
constexpr bool is_call(const Calls& calls, int64_t number, bool on_aarch64) {
  return number >= 0 && std::any_of(std::begin(calls), std::end(calls), [&](const SystemCall& call) {
           return call.number(on_aarch64) == number;
         });
}

}  // namespace phlox
