// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// A thread leaves its CPU: it is walked if there is credit. A thread comes back to a CPU: its wait is
// reported. Short waits are reported together, with the stack of one of them.
#pragma once

#include "credit.bpf.h"

// A thread of a recorded process leaves its CPU: records its stack and its system call. Returns whether it
// was walked.
static __always_inline int leaves(struct kernel_thread* t, struct task_struct* task, int waits, __u64 now) {
  __u32 tgid = process_id(task), tid = thread_id(task), cpu = bpf_get_smp_processor_id();
  if (t->state != KERNEL_RUNNING) came_unnoticed(t, now);
  account_run(t, not_for_tasks(task), now, waits ? KERNEL_BLOCKED : KERNEL_QUEUED);
  if (t->plain) return 0;
  const int is_frequent = now - t->off.since < FREQUENT;
  t->off.since = now;
  struct pt_regs___kernel* regs = (void*)bpf_task_pt_regs(task);
  long call = REG_CALL(regs);
  t->off.system_call = waits && call >= 0 && call < 4096 ? (__s16)call : -1;
  t->off.futex = waits && CALLS_FUTEX(call) ? REG_ARGUMENT_1(regs) : 0;
  note_wait_target(t, task, t->off.system_call, REG_ARGUMENT_1(regs));
  t->off.waker.thread = t->off.waker.process = 0;
  t->off.waker.stack = 0;
  t->off.waker.ended = KERNEL_ENDED_UNKNOWN;
  t->off.walked = 0;
  t->off.waits = waits != 0;
  t->trace.now = 0;  // until it is read
  const int is_owed = t->walks.until < now + WALKS_AT_ONCE * WALK_EVERY;
  if (t->walks.skips && (is_frequent || t->walks.rare_until > now + RARE_WALKS_AT_ONCE * RARE_WALK_EVERY)) {
    --t->walks.skips;
    return 0;
  }
  struct scratch* s = bpf_map_lookup_elem(&scratches, &cpu);
  struct kernel_process* p = s && !s->busy ? bpf_map_lookup_elem(&processes, &tgid) : 0;
  if (!p || p->id != t->id) return 0;
  // Of a thread that has waited a few times only each wait may be all that it does: of servers with a thread
  // for each request.
  const int is_new =
      waits &&
      t->walks.rare_until < now + (CALLS_FUTEX(call) ? FUTEX_WALKS_OF_NEW : WALKS_OF_NEW) * RARE_WALK_EVERY;
  if (!has_credit(&p->walks, now) &&
      (!is_owed || p->walks.left < -(is_new ? CREDIT_OF_NEW : 1) * KERNEL_MOST_CREDIT)) {
    draw_skips(t, 0);
    return 0;
  }
  walk_current(s, p);
  s->sample.stack.trace = trace_of(t, p->id, task);
  if (s->sample.stack.state) note_gil(s, p, t, CALLS_FUTEX(call) ? REG_ARGUMENT_1(regs) : 0);
  // Whom nobody has met may wait on and on: it is found running, as it was a moment ago.
  const int is_met = t->met || (!s->sample.stack.state && !with_native);
  s->sample.head.type = is_met ? KERNEL_STACK : KERNEL_SAMPLE;
  fill_times(&s->sample, t, tid, now);
  s->sample.off_since = is_met ? now : 0;
  s->sample.system_call = is_met ? t->off.system_call : -1;
  s->sample.native = 0;
  if (!is_met) t->met = 1;
  send_sample(s, p);
  t->off.native = with_native && p->walks.left > KERNEL_MOST_CREDIT / 2 && native_is_due(t, now)
                      ? send_native(s, p, task, 0, t->unreported.native, now)
                      : 0;
  s->sample.stack.flags &= ~KERNEL_FRAMES;
  t->off.stack = s->sample.stack;
  t->off.walked = 1;
  t->walks.until = next_walk(t->walks.until, now, WALK_EVERY, WALKS_AT_ONCE);
  t->walks.rare_until = next_walk(t->walks.rare_until, now, RARE_WALK_EVERY, RARE_WALKS_AT_ONCE);
  draw_skips(t, 1);
  pay(s, p, now);
  return 1;
}

// For a thread that has left its CPU for good.
static __always_inline void forget_thread(struct task_struct* task) {
  __u32 tid = thread_id(task);
  bpf_map_delete_elem(&threads, &tid);
  drop_ids(task);
}

static __always_inline void send_exit(struct task_struct* task, const struct kernel_thread* t, __u64 now) {
  struct kernel_exit record = {
      .head = {KERNEL_EXIT, t->id}, .thread = thread_id(task), .first = thread_id(task) == process_id(task)};
  record.time = now;
  __u64 ran = task->se.sum_exec_runtime;
  barrier_var(ran);  // or a pointer is chosen, which the verifier does not take
  if (!t->born) ran = t->sums.ran;
  record.ran = ran;
  record.blocked = t->sums.blocked;
  record.queued = t->sums.queued;
  send(&record, sizeof record);
}

// On its way to its end it has no stack any more; then it leaves its CPU for good. Its record has a stack of
// its own.
static __noinline void leaves_ending(struct kernel_thread* t, struct task_struct* task, __u32 state,
                                     int preempted, __u64 now) {
  account(t, not_for_tasks_slowly(task), now, state != 0 && !preempted ? KERNEL_BLOCKED : KERNEL_QUEUED);
  t->off.since = 0;
  if (preempted || state != TASK_DEAD) return;
  send_exit(task, t, now);
  forget_thread(task);
}

// A short wait is over. If it was walked, it may represent those that are reported together next, with a
// probability in proportion to its length. If most of them are walked, it is drawn from these; otherwise it
// may represent later ones too, until another replaces it: a longer one always, a shorter one with the ratio
// of their lengths as probability (Metropolis and Hastings). So each represents a time in proportion to its
// length, and one that was exceptionally long does not stay for seconds. Waits with a native half represent
// those without one.
static __always_inline void may_stand_in(struct kernel_thread* t, __u64 now) {
  if (!is_short(t, now)) return;
  if (!t->off.walked || (with_native ? !t->off.native : !t->off.stack.state)) {
    --t->unreported.mostly_walked;
    return;
  }
  ++t->unreported.mostly_walked;
  const __u32 time = now - t->off.since;
  // A preempted thread does not represent a blocked one.
  if (!t->off.waits && t->unreported.waits && (!t->unreported.was_mostly_walked || t->unreported.drawn_from))
    return;
  const int is_first = t->off.waits != t->unreported.waits;
  t->unreported.drawn_from = is_first ? time : t->unreported.drawn_from + time;
  if (!is_first &&
      some_of(t->unreported.was_mostly_walked ? t->unreported.drawn_from : t->unreported.drawn) >= time)
    return;
  t->unreported.drawn = time;
  t->unreported.waits = t->off.waits;
  t->unreported.stack = t->off.stack;
  t->unreported.native = t->off.native;
  t->unreported.system_call = t->off.system_call;
}

#define SEVERAL (~0u)
static __always_inline void note_woken_by(struct kernel_thread* t) {
  const __u32 by = (__u32)bpf_get_current_pid_tgid() + 1;
  t->unreported.woken_by = !t->unreported.woken_by || t->unreported.woken_by == by ? by : SEVERAL;
}

// For a wait that was not walked: the address of a futex shows whether it was for the GIL. Of several waits,
// only the last one's address is known.
static __always_inline __u16 flags_without_walk(const struct kernel_thread* t, int together) {
  if (!t->off.futex) return KERNEL_NOT_WALKED;
  if (together || !t->gil.at) return KERNEL_NOT_WALKED | KERNEL_GIL_UNKNOWN;
  return KERNEL_NOT_WALKED | (is_within(t->off.futex, t->gil.at, t->gil.size) ? KERNEL_WAITS_GIL : 0);
}

// Sends what it waited since the last report.
__noinline int send_wait(struct kernel_thread* t, __u32 tid, __u64 now) {
  if (!t) return 0;
  struct kernel_sample sample = {.head = {KERNEL_SAMPLE, t->id},
                                 .off_since = t->off.since,
                                 .native = t->off.native,
                                 .stack = t->off.stack,
                                 .waker = t->off.waker};
  sample.system_call = t->off.system_call;
  if (is_short(t, now) && t->unreported.drawn) {
    sample.stack = t->unreported.stack;
    sample.native = t->unreported.native;
    sample.system_call = t->unreported.system_call;
    if (sample.stack.trace != t->trace.now) sample.stack.trace = 0;  // it works for another span by now
    if (sample.system_call != t->off.system_call || (t->off.walked && sample.stack.hash != t->off.stack.hash))
      sample.stack.flags |= KERNEL_STANDS_IN;
  } else if (!t->off.walked) {
    sample.stack.count = sample.stack.trace = 0;
    sample.stack.flags = flags_without_walk(t, is_short(t, now));
    sample.native = 0;
  }
  if (is_short(t, now)) sample.stack.flags |= KERNEL_TOGETHER;
  // The waker of the last wait is proved for the others only if the same thread ran when they ended.
  if (is_short(t, now) && t->unreported.woken_by == SEVERAL) sample.waker.ended = KERNEL_ENDED_UNKNOWN;
  t->unreported.woken_by = 0;
  fill_times(&sample, t, tid, now);
  t->unreported.was_mostly_walked = t->unreported.mostly_walked > 0;
  t->unreported.mostly_walked = 0;
  t->unreported.drawn_from = 0;
  t->sums.reported = t->sums.blocked + t->sums.queued + some_of(shortest_like(t) / 2);
  return send(&sample, sizeof sample);
}

// It returns to its CPU. Returns whether its wait was sent.
static __always_inline int comes(struct kernel_thread* t, struct task_struct* task, __u64 now) {
  __u64 stolen = not_for_tasks(task);
  account(t, stolen, now, KERNEL_RUNNING);
  t->sums.stolen = stolen;
  if (!t->off.since) return 0;
  may_stand_in(t, now);
  if (!is_to_be_reported(t, now)) return 0;
  const __u64 begin = clock_now();
  if (has_wait_target(task, t)) send_wait_target(t, thread_id(task));
  const int was_sent = send_wait(t, thread_id(task), now);
  count(KERNEL_COUNT_WAIT_TIME, clock_now() - begin);
  return was_sent;
}

// Of switches that are only counted, one in this many is measured, for all of them.
#define MEASURED 16
// ns. If it took longer, it was interrupted, or the host ran something else: that happened to this one only.
#define LONGEST_COUNTED 10000
static __always_inline void count_time(__u64 since, int worked) {
  __u32 cpu = bpf_get_smp_processor_id();
  struct scratch* s = bpf_map_lookup_elem(&scratches, &cpu);
  if (!s) return;
  if (worked) {
    count(KERNEL_COUNT_TIME, clock_now() - since);
  } else if (++s->switches % MEASURED == 0) {
    __u64 time = clock_now() - since;
    count(KERNEL_COUNT_TIME, time < LONGEST_COUNTED ? time * MEASURED : time);
  }
}

SEC("tp_btf/sched_switch")
int BPF_PROG(on_switch, bool preempted, struct task_struct* before, struct task_struct* after,
             unsigned int state) {
  const int leaving = known.processes[process_id(before) % KERNEL_KNOWN] != 0;
  const int coming = known.processes[process_id(after) % KERNEL_KNOWN] != 0;
  // A thread that is no longer recorded.
  if (!leaving && state == TASK_DEAD) forget_thread(before);
  if (!leaving && !coming) return 0;
  __u64 now = clock_now();
  int worked = 0;
  struct kernel_thread* t = leaving ? thread_at_switch(before, now) : 0;
  if (t && (before->flags & PF_EXITING)) {
    leaves_ending(t, before, state, preempted, now);
    worked = 1;
  } else if (t) {
    worked = leaves(t, before, state != 0 && !preempted, now);
  }
  t = coming ? thread_at_switch(after, now) : 0;
  if (t) worked |= comes(t, after, now);
  count_time(now, worked);
  return 0;
}
