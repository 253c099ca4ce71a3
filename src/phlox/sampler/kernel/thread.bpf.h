// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// The threads of recorded processes, and their times: on a CPU, waiting for one, and blocked. The map
// `threads` gets a thread at its birth, or when it is first sampled or switched.
#pragma once

#include "sample.bpf.h"
#include "wait_target.bpf.h"

// A thread that the kernel runs inside the process for itself (io_uring, vhost). It never runs code of the
// process, and its registers are a copy of its creator's: they would name that thread's Python state. The
// flags meant other things in older kernels; no thread of a program has both pointers zero.
static __always_inline int is_kernel_worker(struct task_struct* task) {
  if (!(task->flags & (PF_IO_WORKER | PF_USER_WORKER))) return 0;
  struct pt_regs___kernel* regs = (void*)bpf_task_pt_regs(task);
  return !REG_PC(regs) && !regs->sp;
}

// A thread's value fills most of the 512 bytes of stack that all functions of a call have together before
// Linux 6.13, so one is not made there.
static const volatile struct kernel_thread no_thread = {};
static __always_inline struct kernel_thread* new_thread(__u32 tid) {
  long failed = bpf_map_update_elem(&threads, &tid, (const void*)&no_thread, BPF_ANY);
  if (failed) count(failed == -ENOMEM ? KERNEL_COUNT_NO_MEMORY : KERNEL_COUNT_FULL, 1);
  return bpf_map_lookup_elem(&threads, &tid);
}

// The caller accounts for its time next. 0: no room, or no thread of the program.
static __always_inline struct kernel_thread* thread_of(const struct kernel_process* p,
                                                       struct task_struct* task, __u64 now) {
  __u32 tid = thread_id(task);
  struct kernel_thread* t = bpf_map_lookup_elem(&threads, &tid);
  if (t && (t->id == p->id || (p->continues && t->id == p->continues))) {
    if (t->id != p->id) t->off.since = t->met = 0;
    t->id = p->id;
    t->plain = p->plain;
    t->generation = known.generation;
    return t;
  }
  if (is_kernel_worker(task)) return 0;
  t = new_thread(tid);
  if (!t) return 0;
  t->since = now;
  t->generation = known.generation;
  t->plain = p->plain;
  t->sums.stolen = ~0ull;
  t->state = KERNEL_RUNNING;
  t->id = p->id;
  t->off.system_call = -1;
  return t;
}

// For a task that may belong to a recorded process; 0: it does not. Called at each switch, so it makes only
// one search if that is enough.
static __always_inline struct kernel_thread* thread_at_switch(struct task_struct* task, __u64 now) {
  __u32 tgid = process_id(task), tid = thread_id(task);
  struct kernel_thread* t = bpf_map_lookup_elem(&threads, &tid);
  if (t && t->generation == known.generation) return t;
  struct kernel_process* p = bpf_map_lookup_elem(&processes, &tgid);
  return p ? thread_of(p, task, now) : 0;
}

// Time in which its CPU did something else is not CPU time: the thread waited for a CPU, as it does in a
// queue. `stolen`: not_for_tasks() at `now`.
static __always_inline void account_run(struct kernel_thread* t, __u64 stolen, __u64 now, __u32 becomes) {
  __u64 time = now > t->since ? now - t->since : 0;
  __u64 gone = t->sums.owed + (stolen > t->sums.stolen ? stolen - t->sums.stolen : 0);
  t->sums.stolen = stolen;
  t->sums.owed = gone > time ? gone - time : 0;
  gone -= t->sums.owed;
  t->sums.ran += time - gone;
  t->sums.queued += gone;
  t->since += time;
  t->state = becomes;
}

// `stolen`: not_for_tasks() at `now`, for a thread that ran.
static __always_inline void account(struct kernel_thread* t, __u64 stolen, __u64 now, __u32 becomes) {
  // A thread in exit or execve may have been interrupted since `now`.
  __u64 time = now > t->since ? now - t->since : 0;
  if (t->state == KERNEL_RUNNING) {
    account_run(t, stolen, now, becomes);
    return;
  }
  if (t->state == KERNEL_BLOCKED) {
    t->sums.blocked += time;
  } else {
    t->sums.queued += time;
  }
  t->since += time;
  t->state = becomes;
}

static __always_inline void fill_times(struct kernel_sample* sample, const struct kernel_thread* t, __u32 tid,
                                       __u64 now) {
  sample->thread = tid;
  sample->cpu = (__s16)bpf_get_smp_processor_id();
  sample->time = now;
  sample->ran = t->sums.ran;
  sample->blocked = t->sums.blocked;
  sample->queued = t->sums.queued;
}

int send_wait(struct kernel_thread* t, __u32 tid, __u64 now);

// 0 to below `most`, which is below 2^32.
static __always_inline __u64 some_of(__u64 most) {
  return (bpf_get_prandom_u32() * most) >> 32;
}

// The waker of a wait for the GIL or for a CPU is known otherwise, or does not matter.
static __always_inline __u64 shortest_like(const struct kernel_thread* t) {
  const int other = t->off.waits && !is_within(t->off.futex, t->gil.at, t->gil.size);
  return other ? known.shortest_wait : known.shortest_gil_wait;
}

static __always_inline int is_short(const struct kernel_thread* t, __u64 now) {
  return now - t->off.since < shortest_like(t);
}

// A long wait has its own record; short ones have one when their sum is long enough.
static __always_inline int is_to_be_reported(const struct kernel_thread* t, __u64 now) {
  if (!t->off.since) return 0;
  __s64 together = t->sums.blocked + t->sums.queued - t->sums.reported;
  return !is_short(t, now) || together >= (__s64)shortest_like(t);
}

// For the current thread, if it is on its CPU and no event reported that it came there: on some hosts, some
// switches in a thousand have no event (perf stat -a -e sched:sched_switch,context-switches counts fewer of
// the former). The scheduler has noted when it came.
__noinline int came_unnoticed(struct kernel_thread* t, __u64 now) {
  if (!t) return 0;
  struct task_struct* task = bpf_get_current_task_btf();
  struct cfs_rq* queue = 0;
  __u64 clock = 0, came = now;
  if (bpf_core_field_exists(task->se.cfs_rq) && bpf_core_field_exists(((struct cfs_rq*)0)->rq) &&
      bpf_core_field_exists(task->sched_info.last_arrival)) {
    bpf_probe_read_kernel(&queue, 8, &task->se.cfs_rq);
    clock = BPF_CORE_READ(queue, rq, clock);
    came = task->sched_info.last_arrival;
    came = clock > came ? now - (clock - came) : now;
  }
  if (came < t->since || came > now) came = now;
  account(t, 0, came, KERNEL_RUNNING);
  t->sums.stolen = ~0ull;
  if (is_to_be_reported(t, came)) send_wait(t, thread_id(task), came);
  return 0;
}
