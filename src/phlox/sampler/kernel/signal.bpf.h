// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Signals that end a program by default: which process sends one, and the stacks of sender and receiver.
#pragma once

#include "clock.bpf.h"

// include/uapi/asm/signal.h: HUP, INT, QUIT, ILL, ABRT, BUS, FPE, KILL, SEGV, TERM, XCPU, SYS.
#define ENDING_SIGNALS                                                                             \
  (1ull << 1 | 1ull << 2 | 1ull << 3 | 1ull << 4 | 1ull << 6 | 1ull << 7 | 1ull << 8 | 1ull << 9 | \
   1ull << 11 | 1ull << 15 | 1ull << 24 | 1ull << 31)
#define IS_ENDING(sig) ((sig) > 0 && (sig) < 64 && (ENDING_SIGNALS >> (sig)&1))
// include/uapi/asm-generic/siginfo.h. A process sends these codes: kill, sigqueue, tgkill.
#define SI_USER 0
#define SI_KERNEL 0x80
#define BY_PROCESS(code) ((code) == SI_USER || (code) == -1 || (code) == -6)
// include/linux/signal.h: SEND_SIG_PRIV, a number in place of the pointer. 0: a process sent it.
#define SENT_BY_KERNEL ((void*)1)
// include/linux/sched/signal.h
#define SIGNAL_GROUP_EXIT 4

// Whether the kernel has decided to end the process with this signal. It does so as it sends one that needs
// no core dump, and then delivers SIGKILL to each thread (kernel/signal.c: complete_signal).
static __always_inline int ends_with(struct task_struct* task, int signal) {
  return (BPF_CORE_READ(task, signal, flags) & SIGNAL_GROUP_EXIT) &&
         BPF_CORE_READ(task, signal, group_exit_code) == signal;
}

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct kernel_siginfo {
  int si_code;
};
struct sigaction {
  void* sa_handler;
};
struct k_sigaction {
  struct sigaction sa;
};
#pragma clang attribute pop

// These samples are rare, and the last ones of a program, so they may use more credit than other walks.
// Interrupts are off while signals are sent and delivered, so nothing else uses the scratch meanwhile.
// Returns whether there is a sample.
static __always_inline int sample_at_signal(struct scratch* s, struct kernel_process* p,
                                            struct task_struct* task, __u64 now) {
  if (p->plain || s->busy || is_kernel_worker(task) || (task->flags & PF_EXITING)) return 0;
  if (!has_credit(&p->walks, now) && p->walks.left < -CREDIT_OF_VERY_LONG * KERNEL_MOST_CREDIT) return 0;
  struct kernel_thread* t = thread_of(p, task, now);
  if (!t) return 0;
  int sent = sample_current(s, p, t, task, 0, not_for_tasks_slowly(task), now);
  pay(s, p, now);
  return sent;
}

// A program may be sent signals without end. Their records would fill the ring, and the one that ends the
// program would be lost. The consumer keeps fewer of them (assemble/consumer_signals.cpp).
#define SIGNAL_EVERY 33000000ull
#define SIGNALS_AT_ONCE 300
static __always_inline int are_too_many(struct kernel_process* receiver, __u64 now) {
  const __u64 until = receiver->signals_until;
  if (until > now + SIGNALS_AT_ONCE * SIGNAL_EVERY) return 1;
  receiver->signals_until = (until > now ? until : now) + SIGNAL_EVERY;
  return 0;
}

static __always_inline struct kernel_signal* begin_signal(struct scratch* s, const struct kernel_process* p,
                                                          int signal, __u8 what, __u64 now) {
  struct kernel_signal* record = &s->signal;
  __builtin_memset(record, 0, sizeof *record);
  record->head.type = KERNEL_SIGNAL;
  record->head.id = p->id;
  record->time = now;
  record->signal = (__u16)signal;
  record->what = what;
  return record;
}

SEC("tp_btf/signal_generate")
int BPF_PROG(on_signal, int signal, struct kernel_siginfo* info, struct task_struct* task, int group,
             int result) {
  __u32 to = process_id(task), cpu = bpf_get_smp_processor_id();
  struct kernel_process* receiver = process_of(to);
  struct scratch* s = bpf_map_lookup_elem(&scratches, &cpu);
  if (!receiver || !s || result || !IS_ENDING(signal)) return 0;
  const __u64 now = clock_now();
  const int ends = ends_with(task, signal);
  if (are_too_many(receiver, now) && !ends) return 0;
  int code = SI_USER;
  if (info == SENT_BY_KERNEL) {
    code = SI_KERNEL;
  } else if (info) {
    bpf_probe_read_kernel(&code, sizeof code,
                          (void*)info + bpf_core_field_offset(struct kernel_siginfo, si_code));
  }
  struct task_struct* by = bpf_get_current_task_btf();
  const __u32 from = BY_PROCESS(code) ? process_id(by) : 0;
  struct kernel_signal* record = begin_signal(s, receiver, signal, KERNEL_SIGNAL_RECEIVED, now);
  record->other = from;
  if (BY_PROCESS(code)) BPF_CORE_READ_INTO(&record->name, by, group_leader, comm);
  if (!BY_PROCESS(code)) record->flags = KERNEL_SIGNAL_BY_KERNEL;
  if (code > 0 && code < SI_KERNEL && by == task) record->flags |= KERNEL_SIGNAL_OWN;
  if (ends) record->flags |= KERNEL_SIGNAL_ENDS;
  send(record, sizeof *record);
  struct kernel_process* sender = from ? process_of(from) : 0;
  if (!sender) return 0;
  const int seen = sample_at_signal(s, sender, by, now);
  record = begin_signal(s, sender, signal, KERNEL_SIGNAL_SENT, now);
  record->thread = thread_id(by);
  record->other = to;
  if (!seen) record->flags |= KERNEL_SIGNAL_UNSEEN;
  BPF_CORE_READ_INTO(&record->name, task, group_leader, comm);
  send(record, sizeof *record);
  count(KERNEL_COUNT_TIME, clock_now() - now);
  return 0;
}

SEC("tp_btf/signal_deliver")
int BPF_PROG(on_deliver, int signal, struct kernel_siginfo* info, struct k_sigaction* action) {
  struct task_struct* task = bpf_get_current_task_btf();
  __u32 cpu = bpf_get_smp_processor_id();
  struct kernel_process* p = process_of(process_id(task));
  struct scratch* s = bpf_map_lookup_elem(&scratches, &cpu);
  if (!p || !s || !IS_ENDING(signal)) return 0;
  const __u64 now = clock_now();
  const int handled = (__u64)BPF_CORE_READ(action, sa.sa_handler) > 1;
  if (are_too_many(p, now) && handled) return 0;
  const int seen = sample_at_signal(s, p, task, now);
  struct kernel_signal* record = begin_signal(s, p, signal, KERNEL_SIGNAL_DELIVERED, now);
  record->thread = thread_id(task);
  if (!seen) record->flags |= KERNEL_SIGNAL_UNSEEN;
  if (handled) record->flags |= KERNEL_SIGNAL_HANDLED;
  if (bpf_core_field_exists(task->signal->oom_mm) && BPF_CORE_READ(task, signal, oom_mm))
    record->flags |= KERNEL_SIGNAL_NO_MEMORY;
  send(record, sizeof *record);
  count(KERNEL_COUNT_TIME, clock_now() - now);
  return 0;
}
