// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// What ended a wait, if that is proved. The thread that runs on this CPU while another is woken is the waker
// only if one of these holds for what the other waits for:
// - a futex: the thread is in a call that wakes threads at this address of this memory, or it ends and the
//   kernel does that for it (clear_child_tid);
// - a child: the thread belongs to a child of the waiting process, and ends;
// - a connection of TCP: the thread is in a call on the other end;
// - anything else: the kernel wakes in that thread's own call, not in an interrupt that hit it, and no signal
//   does. A thread that sleeps interruptibly is on the wait queues of what it waits for and on no others, so
//   a thread that wakes it then acts on that. If the kernel does not distinguish an interrupt from a call,
//   the thread must be in a call on the other end.
// A wait whose own timer fired ended by its timeout. For all others nothing is reported.
#pragma once

#include "other_end.bpf.h"
#include "wake_context.bpf.h"
#include "walk.bpf.h"

// include/linux/sched.h
#define TASK_INTERRUPTIBLE 1
#define TASK_UNINTERRUPTIBLE 2

// include/uapi/linux/futex.h: WAKE, REQUEUE, CMP_REQUEUE, WAKE_OP, UNLOCK_PI, WAKE_BITSET, CMP_REQUEUE_PI.
#define FUTEX_COMMANDS (1 << 1 | 1 << 3 | 1 << 4 | 1 << 5 | 1 << 7 | 1 << 10 | 1 << 12)
#define FUTEX_WAKE_OP 5
static __always_inline int wakes_futex(struct task_struct* task, struct pt_regs___kernel* regs, long call,
                                       __u64 futex) {
  if (task->flags & PF_EXITING) return (__u64)BPF_CORE_READ(task, clear_child_tid) == futex;
  if (IS_FUTEX_WAKE(call)) return REG_ARGUMENT_1(regs) == futex;
  const __u32 command = REG_ARGUMENT_2(regs) & 0x7f;
  if (!CALLS_FUTEX(call) || command > 12 || !(1 << command & FUTEX_COMMANDS)) return 0;
  return REG_ARGUMENT_1(regs) == futex || (command == FUTEX_WAKE_OP && REG_ARGUMENT_5(regs) == futex);
}

// wait4 and waitid: the kernel wakes for an awaited child, and for a signal. vfork: for its child.
static __always_inline int ends_for_parent(struct task_struct* task, struct task_struct* woken,
                                           const struct kernel_thread* t, int signalled) {
  struct task_struct* parent = BPF_CORE_READ(task, real_parent);
  if (CALLS_FORK(t->off.system_call)) return (__u64)parent == (__u64)woken;
  const int which = t->off.waits_for_what == KERNEL_WAITS_FOR_CHILD ? t->off.waits_for : -1;
  return (task->flags & PF_EXITING) && BPF_CORE_READ(parent, tgid) == BPF_CORE_READ(woken, tgid) &&
         (!signalled || which == (int)process_id(task));
}

// For poll and select of several descriptors, only their number is known.
struct waited {
  struct file* file;  // that is ready, or the one that is waited for; 0: not known
  int nothing;        // an epoll instance of which nothing is ready
};
static __always_inline struct waited waited_for(const struct kernel_thread* t) {
  struct file* file = t->off.waits_for_others ? 0 : (struct file*)t->off.file;
  struct waited out = {.file = file};
  if (!IS_EPOLL(t->off.system_call) || !file) return out;
  struct eventpoll* poll = BPF_CORE_READ(file, private_data);
  struct epitem* item = 0;
  if (!bpf_core_field_exists(poll->rdllist) || !bpf_core_field_exists(item->rdllink)) return out;
  // The file that became ready is last in the list when the waiting thread is woken (fs/eventpoll.c).
  struct list_head *head = &poll->rdllist, *last = BPF_CORE_READ(poll, rdllist.prev);
  out.nothing = last == head;
  item = (void*)last - bpf_core_field_offset(struct epitem, rdllink);
  out.file = out.nothing ? 0 : BPF_CORE_READ(item, ffd.file);
  return out;
}

static __always_inline int acts_on_wait_target(struct task_struct* task, const struct kernel_thread* t,
                                               __u64 first, enum wake_context context) {
  const struct waited waited = waited_for(t);
  if (waited.nothing) return 0;
  struct sock* sock = socket_of(waited.file);
  if (sock && is_internet(sock)) return acts_on_connection(sock, task, first);
  if (context == IN_UNKNOWN) return acts_on_same(waited.file, task, first);
  // One of several may be a connection, whose bytes the kernel may process in any thread's call on it.
  struct sock* acts = waited.file ? 0 : socket_of(file_at(task, first));
  return context == IN_CALL && !(acts && is_internet(acts));
}

static __always_inline int is_waker(struct task_struct* task, struct task_struct* woken,
                                    const struct kernel_thread* t, enum wake_context context) {
  struct pt_regs___kernel* regs = (void*)bpf_task_pt_regs(task);
  const long call = REG_CALL(regs), waits = t->off.system_call;
  if (!task->pid || (task->flags & (PF_KTHREAD | PF_IO_WORKER | PF_USER_WORKER))) return 0;
  if (context == IN_HARDIRQ || (call < 0 && !(task->flags & PF_EXITING))) return 0;
  const int signalled = is_signalled(woken), in_call = context == IN_CALL || context == IN_UNKNOWN;
  const __u32 state = BPF_CORE_READ(woken, __state);
  if (CALLS_CHILD(waits) || CALLS_FORK(waits)) return in_call && ends_for_parent(task, woken, t, signalled);
  if (signalled || !(state & TASK_INTERRUPTIBLE)) return 0;
  if (!CALLS_FUTEX(waits)) return acts_on_wait_target(task, t, REG_ARGUMENT_1(regs), context);
  return in_call && memory_of(task) == BPF_CORE_READ(woken, mm) &&
         wakes_futex(task, regs, call, t->off.futex);
}

// Fills t->off.waker. Returns 1 if the current thread is the waker and has a stack to walk. Verified once.
__noinline int judge_waker(struct kernel_thread* t) {
  if (!t) return 0;
  // For a call that only sleeps it would say nothing.
  if (t->off.system_call < 0 || CALLS_SLEEP(t->off.system_call) ||
      t->off.waits_for_what == KERNEL_WAITS_FOR_TIME)
    return 0;
  struct task_struct *task = bpf_get_current_task_btf(), *woken = (void*)t->off.woken;
  const __u64 queue = queue_of(task);
  const enum wake_context context = context_of(task, queue);
  if (context != IN_CALL && context != IN_SOFTIRQ && is_own_timeout(woken, queue)) {
    t->off.waker.ended = KERNEL_ENDED_BY_TIMEOUT;
    return 0;
  }
  if (!is_waker(task, woken, t, context)) return 0;
  t->off.waker.ended = KERNEL_ENDED_BY_THREAD;
  t->off.waker.thread = thread_id(task);
  t->off.waker.process = process_id(task);
  // The name of the process: the name of a library's thread (jemalloc_bg_thd) does not show which process it
  // is.
  BPF_CORE_READ_INTO(&t->off.waker.name, task, group_leader, comm);
  return !(task->flags & PF_EXITING);
}
