// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// The context in which a thread is woken: a system call of the thread that runs on this CPU, or an interrupt
// that hit that thread, which may be unrelated. And whether the timer of the wait's own call fired.
#pragma once

#include "maps.bpf.h"

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct hrtimer;
struct hrtimer_clock_base {
  struct hrtimer* running;
};
struct hrtimer_cpu_base {
  struct hrtimer_clock_base clock_base[8];
};
struct pcpu_hot {  // of x86-64, Linux 6.2 to 6.14
  int preempt_count;
};
#pragma clang attribute pop

// Set by the loader.
const volatile struct kernel_host host SEC(".rodata.host") = {};

enum wake_context { IN_CALL, IN_SOFTIRQ, IN_HARDIRQ, IN_UNKNOWN };

// include/linux/preempt.h
#define SOFTIRQ_SERVED 0x100
#define HARDIRQ_AND_NMI 0xff0000
#define CLOCK_BASES 8

// The run queue of this CPU; 0: not known. Addresses as numbers, not pointers, are cheaper to verify.
static __always_inline __u64 queue_of(struct task_struct* task) {
  if (!bpf_core_field_exists(task->se.cfs_rq) || !bpf_core_field_exists(((struct cfs_rq*)0)->rq)) return 0;
  return (__u64)BPF_CORE_READ(task, se.cfs_rq, rq);
}

#if defined(__TARGET_ARCH_x86)
// Of this CPU; 0: not known.
static __always_inline __u64 preempt_count_at(struct task_struct* task, __u64 queue) {
  struct pcpu_hot* hot = 0;
  if (!host.preempt_count || !queue) return 0;
  __u64 at = queue + host.preempt_count;
  if (bpf_core_field_exists(hot->preempt_count)) at += bpf_core_field_offset(hot->preempt_count);
  return at;
}
#else
// Of the thread that runs there.
static __always_inline __u64 preempt_count_at(struct task_struct* task, __u64 queue) {
  if (!bpf_core_field_exists(task->thread_info.preempt_count)) return 0;
  return (__u64)__builtin_preserve_access_index(&task->thread_info.preempt_count);
}
#endif

// If interrupts are threads (PREEMPT_RT), the count does not show them.
static __always_inline enum wake_context context_of(struct task_struct* task, __u64 queue) {
  const __u64 at = preempt_count_at(task, queue);
  __u32 count = 0;
  if (!at || bpf_core_field_exists(task->softirq_disable_cnt)) return IN_UNKNOWN;
  if (bpf_probe_read_kernel(&count, sizeof count, (void*)at)) return IN_UNKNOWN;
  return count & HARDIRQ_AND_NMI ? IN_HARDIRQ : count & SOFTIRQ_SERVED ? IN_SOFTIRQ : IN_CALL;
}

// Whether the timer that this CPU runs is on the stack of the woken thread: a call that waits until a time
// has its timer there (kernel/time/hrtimer.c: hrtimer_sleeper).
static __always_inline int is_own_timeout(struct task_struct* woken, __u64 queue) {
  struct hrtimer_cpu_base* bases = 0;
  struct hrtimer_clock_base* base = 0;
  if (!host.timers || !queue || !bpf_core_field_exists(bases->clock_base) ||
      !bpf_core_field_exists(base->running))
    return 0;
  __u64 at =
      queue + host.timers + bpf_core_field_offset(bases->clock_base) + bpf_core_field_offset(base->running);
  const __u64 stack = (__u64)BPF_CORE_READ(woken, stack);
  for (int i = 0; i < CLOCK_BASES; ++i) {
    __u64 running = 0;
    bpf_probe_read_kernel(&running, sizeof running, (void*)(at + i * bpf_core_type_size(*base)));
    if (stack && running - stack < host.stack_size) return 1;
  }
  return 0;
}

// Whether a signal wakes it, or a stop, a tracer or the freezer: these are set before it is woken.
static __always_inline int is_signalled(struct task_struct* woken) {
  unsigned long sent = BPF_CORE_READ(woken, pending.signal.sig[0]) |
                       BPF_CORE_READ(woken, signal, shared_pending.signal.sig[0]);
  return (sent & ~BPF_CORE_READ(woken, blocked.sig[0])) != 0 || BPF_CORE_READ(woken, jobctl) >> 16 != 0 ||
         BPF_CORE_READ(woken, task_works) != 0;
}
