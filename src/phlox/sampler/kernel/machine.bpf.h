// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// What differs between the machines: registers, the thread pointer, the numbers of system calls.
#pragma once

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
#if defined(__TARGET_ARCH_x86)
struct thread_struct {
  unsigned long fsbase;
};
struct pt_regs___kernel {
  unsigned long bx, bp, r8, r10, dx, si, di, orig_ax, ip, sp;
};
#elif defined(__TARGET_ARCH_arm64)
struct thread_struct {
  struct {
    unsigned long tp_value;
  } uw;
};
struct thread_info {
  unsigned long long preempt_count;
};
struct pt_regs___kernel {
  unsigned long long regs[31], sp, pc, orig_x0;
  int syscallno;
};
#else
#error "another machine"
#endif
#pragma clang attribute pop

#if defined(__TARGET_ARCH_x86)
#define PHLOX_SYSTEM_CALL(name, x86_64, aarch64) CALL_##name = (x86_64) < 0 ? NO_SUCH_CALL : (x86_64),
#define THREAD_POINTER(task) ((task)->thread.fsbase)
#define REG_PC(regs) ((regs)->ip)
#define REG_FP(regs) ((regs)->bp)
#define REG_LR(regs) 0
#define REG_BX(regs) ((regs)->bx)
// The number of the system call that the thread is in; below zero: none.
#define REG_CALL(regs) ((long)(regs)->orig_ax)
#define REG_ARGUMENT_1(regs) ((regs)->di)
#define REG_ARGUMENT_2(regs) ((regs)->si)
#define REG_ARGUMENT_3(regs) ((regs)->dx)
#define REG_ARGUMENT_4(regs) ((regs)->r10)
#define REG_ARGUMENT_5(regs) ((regs)->r8)
// Of a bpf_perf_event_data: whether the interrupt hit code of the thread's own, and where.
#define HIT_USER(context) ((context)->regs.cs & 3)
#define HIT_PC(context) ((context)->regs.rip)
#else
#define PHLOX_SYSTEM_CALL(name, x86_64, aarch64) CALL_##name = (aarch64) < 0 ? NO_SUCH_CALL : (aarch64),
// TPIDR_EL0 as the kernel last kept it: when the thread was made, or last left its CPU. So a program's first
// thread, which sets the register itself, has none until then.
#define THREAD_POINTER(task) ((task)->thread.uw.tp_value)
#define REG_PC(regs) ((regs)->pc)
#define REG_FP(regs) ((regs)->regs[29])
#define REG_LR(regs) ((regs)->regs[30])
#define REG_BX(regs) 0
#define REG_CALL(regs) ((long)(regs)->syscallno)
#define REG_ARGUMENT_1(regs) ((regs)->orig_x0)
#define REG_ARGUMENT_2(regs) ((regs)->regs[1])
#define REG_ARGUMENT_3(regs) ((regs)->regs[2])
#define REG_ARGUMENT_4(regs) ((regs)->regs[3])
#define REG_ARGUMENT_5(regs) ((regs)->regs[4])
#define HIT_USER(context) (((context)->regs.pstate & 0xf) == 0)  // exception level 0
#define HIT_PC(context) ((context)->regs.pc)
#endif

enum {
  NO_SUCH_CALL = 8192,
#include "../../base/system_calls.inc"
};
#undef PHLOX_SYSTEM_CALL

#if defined(__TARGET_ARCH_arm64)
// linux/bpf_perf_event.h of arm64, whose headers an x86-64 machine does not have.
struct bpf_perf_event_data {
  struct {
    __u64 regs[31], sp, pc, pstate;
  } regs;
  __u64 sample_period, addr;
};
#else
#include <linux/bpf_perf_event.h>
#endif

#define CALLS_FUTEX(n) ((n) == CALL_futex)
#define CALLS_CHILD(n) ((n) == CALL_wait4 || (n) == CALL_waitid)
// Or for a signal.
#define CALLS_SLEEP(n)                                                                                       \
  ((n) == CALL_nanosleep || (n) == CALL_clock_nanosleep || (n) == CALL_pause || (n) == CALL_rt_sigsuspend || \
   (n) == CALL_rt_sigtimedwait)
// The parent waits for a child that shares its memory (CLONE_VFORK).
#define CALLS_FORK(n) ((n) == CALL_clone || (n) == CALL_fork || (n) == CALL_vfork || (n) == CALL_clone3)
#define IS_FUTEX_WAKE(n) ((n) == CALL_futex_wake)  // Linux 6.7
#define IS_POLL(n) ((n) == CALL_poll || (n) == CALL_ppoll)
#define IS_SELECT(n) ((n) == CALL_select || (n) == CALL_pselect6)
#define IS_EPOLL(n) ((n) == CALL_epoll_wait || (n) == CALL_epoll_pwait || (n) == CALL_epoll_pwait2)

// Calls whose first argument is the descriptor that they wait for: CALLS_DESCRIPTOR(word) is a word of a set
// with a bit for each.
#define DESCRIPTOR_CALL(name, word) (CALL_##name / 64 == (word) ? 1ull << CALL_##name % 64 : 0)
#define CALLS_DESCRIPTOR(word)                                                                               \
  (DESCRIPTOR_CALL(read, word) | DESCRIPTOR_CALL(write, word) | DESCRIPTOR_CALL(close, word) |               \
   DESCRIPTOR_CALL(ioctl, word) | DESCRIPTOR_CALL(pread64, word) | DESCRIPTOR_CALL(pwrite64, word) |         \
   DESCRIPTOR_CALL(readv, word) | DESCRIPTOR_CALL(writev, word) | DESCRIPTOR_CALL(sendfile, word) |          \
   DESCRIPTOR_CALL(connect, word) | DESCRIPTOR_CALL(accept, word) | DESCRIPTOR_CALL(accept4, word) |         \
   DESCRIPTOR_CALL(sendto, word) | DESCRIPTOR_CALL(recvfrom, word) | DESCRIPTOR_CALL(sendmsg, word) |        \
   DESCRIPTOR_CALL(recvmsg, word) | DESCRIPTOR_CALL(sendmmsg, word) | DESCRIPTOR_CALL(recvmmsg, word) |      \
   DESCRIPTOR_CALL(fcntl, word) | DESCRIPTOR_CALL(flock, word) | DESCRIPTOR_CALL(fsync, word) |              \
   DESCRIPTOR_CALL(fdatasync, word) | DESCRIPTOR_CALL(ftruncate, word) | DESCRIPTOR_CALL(fallocate, word) |  \
   DESCRIPTOR_CALL(getdents64, word) | DESCRIPTOR_CALL(epoll_wait, word) |                                   \
   DESCRIPTOR_CALL(epoll_pwait, word) | DESCRIPTOR_CALL(epoll_pwait2, word) |                                \
   DESCRIPTOR_CALL(splice, word) | DESCRIPTOR_CALL(tee, word) | DESCRIPTOR_CALL(vmsplice, word) |            \
   DESCRIPTOR_CALL(sync_file_range, word) | DESCRIPTOR_CALL(preadv, word) | DESCRIPTOR_CALL(pwritev, word) | \
   DESCRIPTOR_CALL(preadv2, word) | DESCRIPTOR_CALL(pwritev2, word) | DESCRIPTOR_CALL(io_uring_enter, word))
