// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Who wakes a thread. Whoever runs on this CPU then may have nothing to do with it: a timer that ended, or a
// device, interrupts whom it finds. So it counts only while it is in a system call that wakes those who are
// in the one that the waiting thread is in; of a futex, in a call with the same address. (Whether this is an
// interrupt the kernel does not tell programs like this one.)
#pragma once

#include "walk.bpf.h"

// What puts bytes, connections or an end of them where another waits, or makes room there: read, write,
// close, readv, writev, sendfile, connect, accept, sendto, recvfrom, sendmsg, recvmsg, shutdown, splice, tee,
// vmsplice, accept4, recvmmsg, sendmmsg, close_range.
static __always_inline int moves_bytes(long call) {
  switch (call) {
    case 0:
    case 1:
    case 3:
    case 19:
    case 20:
    case 40:
    case 42:
    case 44:
    case 45:
    case 46:
    case 47:
    case 48:
    case 43:
    case 288:
    case 275:
    case 276:
    case 278:
    case 299:
    case 307:
    case 436:
      return 1;
    default:
      return 0;
  }
}

static __always_inline int wakes(struct task_struct* task, long call, __u64 address,
                                 const struct kernel_thread* t) {
  const long waits = t->system_call;
  if (waits < 0 || CALLS_SLEEP(waits)) return 0;
  if (task->flags & PF_EXITING) return 1;
  if (call < 0) return 0;
  if (CALLS_FUTEX(waits)) return CALLS_FUTEX(call) && address == t->futex;
  if (CALLS_CHILD(waits)) return 0;
  if (CALLS_LOCK(waits)) return CALLS_LOCK(call) || call == 3;
  return moves_bytes(call);
}

// Of the current thread, if it wakes `t`. Gives 1 if its stack is worth a walk.
static __always_inline int note_waker(struct kernel_thread* t) {
  struct task_struct* task = bpf_get_current_task_btf();
  if (!task->pid || (task->flags & PF_KTHREAD)) return 0;
  struct pt_regs___kernel* regs = (void*)bpf_task_pt_regs(task);
  if (!wakes(task, (long)regs->orig_ax, regs->di, t)) return 0;
  t->wake.thread = task->pid;
  t->wake.process = task->tgid;
  // The name of the process: that of a thread of some library (jemalloc_bg_thd) does not tell which process
  // it is.
  BPF_CORE_READ_INTO(&t->wake.name, task, group_leader, comm);
  return !(task->flags & PF_EXITING);
}
