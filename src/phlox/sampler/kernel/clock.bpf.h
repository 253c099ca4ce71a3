// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Samples the thread that runs, on the CPU clock of each CPU.
#pragma once

#include "credit.bpf.h"

// Samples the current thread. `stolen`: its not_for_tasks(). `context`: of the clock's interrupt; 0: there is
// none.
// Returns whether there was room for it.
static __always_inline int sample_current(struct scratch* s, struct kernel_process* p,
                                          struct kernel_thread* t, struct task_struct* task,
                                          struct bpf_perf_event_data* context, __u64 stolen, __u64 now) {
  if (t->state != KERNEL_RUNNING) came_unnoticed(t, now);
  account_run(t, stolen, now, KERNEL_RUNNING);
  walk_current(s, p);
  s->sample.stack.trace = trace_of(t, p->id, task);
  if (s->sample.stack.state) note_gil(s, p, t, 0);
  s->sample.head.type = KERNEL_SAMPLE;
  fill_times(&s->sample, t, thread_id(task), now);
  s->sample.off_since = 0;
  s->sample.system_call = -1;
  s->sample.native = with_native                    ? send_native(s, p, task, context, 0, now)
                     : context && HIT_USER(context) ? HIT_PC(context)
                                                    : 0;
  t->met = 1;
  return send_sample(s, p);
}

SEC("perf_event")
int on_clock(struct bpf_perf_event_data* context) {
  struct task_struct* task = (void*)bpf_get_current_task_btf();
  count(KERNEL_COUNT_HITS, 1);
  struct kernel_process* p = process_of(process_id(task));
  __u32 cpu = bpf_get_smp_processor_id();
  struct scratch* s = p && !p->plain ? bpf_map_lookup_elem(&scratches, &cpu) : 0;
  if (!p || !s || s->busy || (task->flags & PF_EXITING)) return 0;
  __u64 now = clock_now();
  if (!has_credit(&p->clock, now)) {
    count(KERNEL_COUNT_SKIPPED, 1);
    return 0;
  }
  struct kernel_thread* t = thread_of(p, task, now);
  if (!t) return 0;
  sample_current(s, p, t, task, context, not_for_tasks(task), now);
  count(KERNEL_COUNT_WALKS, 1);
  now = clock_now() - now;
  p->clock.left -= (__s64)at_most(now, longest_paid(s));
  count(KERNEL_COUNT_TIME, now);
  count(KERNEL_COUNT_CLOCK_TIME, now);
  return 0;
}
