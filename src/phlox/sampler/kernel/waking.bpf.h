// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// A blocked thread of a recorded process is woken: which thread ends its wait, and the stacks of both.
#pragma once

#include "credit.bpf.h"
#include "waker.bpf.h"

// The stack with which a thread of a recorded process wakes another one of it.
static __always_inline void walk_waker(struct kernel_thread* t, __u64 now) {
  __u32 tgid = t->off.waker.process, cpu = bpf_get_smp_processor_id();
  struct kernel_process* p = is_kernel_worker(bpf_get_current_task_btf()) ? 0 : process_of(tgid);
  struct scratch* s = p && p->id == t->id ? bpf_map_lookup_elem(&scratches, &cpu) : 0;
  // The stacks of waiting threads have priority.
  if (!s || s->busy || !has_credit(&p->walks, now) || p->walks.left < KERNEL_MOST_CREDIT / 2) return;
  walk_current(s, p);
  s->sample.head.type = KERNEL_STACK;
  send_sample(s, p);
  t->off.waker.stack = s->sample.stack.count ? s->sample.stack.hash : 0;
  pay(s, p, now);
}

// For a long wait that was not walked when it began, or whose native half was not copied, and which a thread
// of the same process ends: the woken thread has not run since, and its stack is in this address space.
static __always_inline void walk_sleeper(struct kernel_thread* t, struct task_struct* task, __u64 now) {
  if (is_short(t, now) || (t->off.walked && (t->off.native || !with_native))) return;
  __u32 tgid = process_id(task), cpu = bpf_get_smp_processor_id();
  struct kernel_process* p = shares_memory(task) ? bpf_map_lookup_elem(&processes, &tgid) : 0;
  struct scratch* s = p && p->id == t->id ? bpf_map_lookup_elem(&scratches, &cpu) : 0;
  // There are at most a thousand long ones a second, and they have the most credit. Where switches are
  // expensive, waits that are only just long have none: it is for those that cannot be walked at their end.
  const __u64 time = now - t->off.since;
  const int floor = time < known.shortest_gil_wait ? 0
                    : time < VERY_LONG             ? CREDIT_OF_LONG
                                                   : CREDIT_OF_VERY_LONG;
  if (!s || (!has_credit(&p->walks, now) && p->walks.left < -floor * KERNEL_MOST_CREDIT)) return;
  walk_python(s, p, task);
  if (!t->off.walked) {
    s->sample.stack.trace = trace_of(t, p->id, task);
    if (s->sample.stack.state) note_gil(s, p, t, t->off.futex);
    s->sample.head.type = KERNEL_STACK;
    fill_times(&s->sample, t, thread_id(task), now);
    s->sample.off_since = t->off.since;
    send_sample(s, p);
    s->sample.stack.flags &= ~KERNEL_FRAMES;
    t->off.stack = s->sample.stack;
    t->off.walked = 1;
    t->off.native = 0;
  }
  if (with_native && s->sample.stack.hash == t->off.stack.hash)
    t->off.native = send_native(s, p, task, 0, t->unreported.native, now);
  pay(s, p, now);
}

SEC("tp_btf/sched_waking")
int BPF_PROG(on_waking, struct task_struct* task) {
  __u32 tid = thread_id(task);
  if (!known.processes[process_id(task) % KERNEL_KNOWN]) return 0;
  struct kernel_thread* t = bpf_map_lookup_elem(&threads, &tid);
  if (!t || t->state != KERNEL_BLOCKED) return 0;
  __u64 now = clock_now();
  account(t, 0, now, KERNEL_QUEUED);
  note_woken_by(t);
  // For a wait that will have its own record.
  if (!is_to_be_reported(t, now)) return 0;
  walk_sleeper(t, task, now);
  t->off.woken = (__u64)task;
  const __u64 begin = clock_now();
  const int has_stack = judge_waker(t);
  count(KERNEL_COUNT_WAIT_TIME, clock_now() - begin);
  if (has_stack) walk_waker(t, now);
  count(KERNEL_COUNT_TIME, clock_now() - now);
  return 0;
}
