// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Runs in the kernel. On the CPU clock of each CPU, and when a thread of a recorded process leaves its CPU,
// walks that thread's Python frames in its own address space while it cannot run. It reads nothing of
// processes that are not in the map `processes`. It reads the target, writes nothing into it, and waits for
// nothing; a missing page is a failed read, and the sample says so.
//
// The walk follows python/frame_walk.h, the proof of a code object python/code_object.h; both read their
// offsets from the process's row of the layout table. The kernel verifies functions that are not static
// once, and not again for each path to them. Verifying takes most of the time of loading.
#include "wait_target.bpf.h"
#include "waker.bpf.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

// With its frames, if they were not sent yet. Returns whether there was room.
__noinline int send_sample(struct scratch* s, const struct kernel_process* p) {
  if (!s || !p) return 0;
  struct kernel_sample* sample = &s->sample;
  sample->head.id = p->id;
  __u32 n = sample->stack.count;
  struct key key = {sample->stack.hash, p->id};
  if (n == 0 || (!(sample->stack.flags & KERNEL_NOT_READ) && bpf_map_lookup_elem(&stacks, &key)))
    return sample->head.type == KERNEL_STACK ? 1 : send(sample, sizeof *sample);
  sample->stack.flags |= KERNEL_FRAMES;
  if (!send(sample, sizeof *sample + at_most(n, KERNEL_MAX_FRAMES) * 8)) return 0;
  __u32 one = 1;
  if (!(sample->stack.flags & KERNEL_NOT_READ)) bpf_map_update_elem(&stacks, &key, &one, BPF_ANY);
  return 1;
}

// Walks the thread that runs on this CPU. Verified once in each program, and not once for each path to it.
__noinline int walk_current(struct scratch* s, const struct kernel_process* p) {
  if (!s || !p) return 0;
  return walk_python(s, p, bpf_get_current_task_btf());
}

// take_gil() waits on the condition variable inside the GIL's own struct (Python/ceval_gil.c).
static __always_inline int is_within(__u64 futex, __u64 gil, __u64 size) {
  return gil && futex >= gil && futex - gil < size;
}

// `t`: keeps it for waits that are not walked; 0: not kept.
static __always_inline void note_gil(struct scratch* s, const struct kernel_process* p,
                                     struct kernel_thread* t, __u64 futex) {
  struct kernel_stack* stack = &s->sample.stack;
  __u64 gil = p->gil, holder = 0;
  __u32 word = 0;
  if (!gil && p->interp_gil != KERNEL_ABSENT)
    bpf_probe_read_user(&gil, 8, (void*)(stack->interpreter + p->interp_gil));
  if (gil && !bpf_probe_read_user(&holder, 8, (void*)(gil + p->gil_holder)) && holder == stack->state)
    stack->flags |= KERNEL_HELD_GIL;
  if ((stack->flags & KERNEL_HELD_GIL) && !bpf_probe_read_user(&word, 4, (void*)(gil + p->gil_locked)) &&
      word == 1)
    stack->flags |= KERNEL_HOLDS_GIL;
  else if (is_within(futex, gil, p->gil_size))
    stack->flags |= KERNEL_WAITS_GIL;
  if (t) {
    t->gil = gil;
    t->gil_size = p->gil_size;
  }
  word = 0;
  if ((stack->flags & KERNEL_HOLDS_GIL) && p->interp_collecting != KERNEL_ABSENT &&
      !bpf_probe_read_user(&word, 4, (void*)(stack->interpreter + p->interp_collecting)) && word == 1)
    stack->flags |= KERNEL_COLLECTING;
}

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
  if (bpf_map_update_elem(&threads, &tid, (const void*)&no_thread, BPF_ANY)) count(KERNEL_COUNT_FULL, 1);
  return bpf_map_lookup_elem(&threads, &tid);
}

// The caller accounts for its time next. 0: no room, or no thread of the program.
static __always_inline struct kernel_thread* thread_of(const struct kernel_process* p,
                                                       struct task_struct* task, __u64 now) {
  __u32 tid = thread_id(task);
  struct kernel_thread* t = bpf_map_lookup_elem(&threads, &tid);
  if (t && (t->id == p->id || (p->continues && t->id == p->continues))) {
    if (t->id != p->id) t->off_since = t->met = 0;
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
  t->stolen = ~0ull;
  t->state = KERNEL_RUNNING;
  t->id = p->id;
  t->system_call = -1;
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
  __u64 gone = t->owed + (stolen > t->stolen ? stolen - t->stolen : 0);
  t->stolen = stolen;
  t->owed = gone > time ? gone - time : 0;
  gone -= t->owed;
  t->ran += time - gone;
  t->queued += gone;
  t->since += time;
  t->state = (__u16)becomes;
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
    t->blocked += time;
  } else {
    t->queued += time;
  }
  t->since += time;
  t->state = (__u16)becomes;
}

static __always_inline void fill_times(struct kernel_sample* sample, const struct kernel_thread* t, __u32 tid,
                                       __u64 now) {
  sample->thread = tid;
  sample->cpu = (__s16)bpf_get_smp_processor_id();
  sample->time = now;
  sample->ran = t->ran;
  sample->blocked = t->blocked;
  sample->queued = t->queued;
}

int send_wait(struct kernel_thread* t, __u32 tid, __u64 now);

// 0 to below `most`, which is below 2^32.
static __always_inline __u64 some_of(__u64 most) {
  return (bpf_get_prandom_u32() * most) >> 32;
}

// The waker of a wait for the GIL or for a CPU is known otherwise, or does not matter.
static __always_inline __u64 shortest_like(const struct kernel_thread* t) {
  const int other = t->waits && !is_within(t->futex, t->gil, t->gil_size);
  return other ? known.shortest_wait : known.shortest_gil_wait;
}

static __always_inline int is_short(const struct kernel_thread* t, __u64 now) {
  return now - t->off_since < shortest_like(t);
}

// A long wait has its own record; short ones have one when their sum is long enough.
static __always_inline int is_to_be_reported(const struct kernel_thread* t, __u64 now) {
  if (!t->off_since) return 0;
  __s64 together = t->blocked + t->queued - t->reported;
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
  t->stolen = ~0ull;
  if (is_to_be_reported(t, came)) send_wait(t, thread_id(task), came);
  return 0;
}

// ns. A longer walk was interrupted, or the host ran something else, which is not the program's fault. A
// walk has more time for each frame that is walked, and for each that is kept.
#define LONGEST_WALK 500000
#define LONGEST_STEP 512
#define LONGEST_PROOF 4096
static __always_inline __u32 longest_paid(const struct scratch* s) {
  return LONGEST_WALK + at_most(s->walk.steps, KERNEL_MOST_STEPS) * LONGEST_STEP +
         at_most(s->walk.kept, KERNEL_MAX_FRAMES) * LONGEST_PROOF;
}

static __always_inline __s64 credit_of(__s64 credit, __u64 time, __u32 share) {
  credit += (__s64)(time * share / 1000);
  return credit > KERNEL_MOST_CREDIT ? KERNEL_MOST_CREDIT : credit;
}

// Whether the clock takes a sample; the caller subtracts its cost. So an expensive sample is followed by a
// pause before the recorder can lower the rate.
static __always_inline int has_clock_credit(struct kernel_process* p, __u64 now) {
  if (now > p->clock_credit_at) {
    p->clock_credit = credit_of(p->clock_credit, now - p->clock_credit_at, p->clock_share);
    p->clock_credit_at = now;
  }
  return p->clock_credit >= 0;
}

// Samples the current thread. `stolen`: its not_for_tasks(). `context`: of the clock's interrupt; 0: there is
// none.
static __always_inline void sample_current(struct scratch* s, struct kernel_process* p,
                                           struct kernel_thread* t, struct task_struct* task,
                                           struct bpf_perf_event_data* context, __u64 stolen, __u64 now) {
  if (t->state != KERNEL_RUNNING) came_unnoticed(t, now);
  account_run(t, stolen, now, KERNEL_RUNNING);
  walk_current(s, p);
  if (s->sample.stack.state) note_gil(s, p, t, 0);
  s->sample.head.type = KERNEL_SAMPLE;
  fill_times(&s->sample, t, thread_id(task), now);
  s->sample.off_since = 0;
  s->sample.system_call = -1;
  s->sample.native = with_native                       ? send_native(s, p, task, context, 0, now)
                     : context && HIT_USER(context) ? HIT_PC(context)
                                                       : 0;
  t->met = 1;
  send_sample(s, p);
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
  if (!has_clock_credit(p, now)) {
    count(KERNEL_COUNT_SKIPPED, 1);
    return 0;
  }
  struct kernel_thread* t = thread_of(p, task, now);
  if (!t) return 0;
  sample_current(s, p, t, task, context, not_for_tasks(task), now);
  count(KERNEL_COUNT_WALKS, 1);
  now = clock_now() - now;
  p->clock_credit -= (__s64)at_most(now, longest_paid(s));
  count(KERNEL_COUNT_TIME, now);
  count(KERNEL_COUNT_CLOCK_TIME, now);
  return 0;
}

// Whether this switch is walked; the caller subtracts its cost.
static __always_inline int has_credit(struct kernel_process* p, __u64 now) {
  // Another CPU may have added later time already.
  if (now > p->credit_at) {
    p->credit = credit_of(p->credit, now - p->credit_at, p->walk_share);
    p->credit_at = now;
  }
  return p->credit >= 0;
}

static __always_inline void pay(const struct scratch* s, struct kernel_process* p, __u64 since) {
  const __s64 time = (__s64)at_most(clock_now() - since, longest_paid(s));
  p->credit -= time;
  // The rest of the budget belongs to the clock, whatever is walked at switches on credit.
  if (p->clock_credit > -KERNEL_MOST_CREDIT) p->clock_credit -= time;
}

// Whether a wait that begins will be long is not known. So each thread has a share of the walks, and may use
// some at once, on credit, before threads that leave their CPU all the time get more.
#define WALK_EVERY 4000000ull
#define WALKS_AT_ONCE 16
// No switch of a thread is skipped that is walked less often than this.
#define RARE_WALK_EVERY 32000000ull
#define RARE_WALKS_AT_ONCE 8
// How many waits of a new thread have priority. Those in a futex are mostly for the GIL, and short.
#define WALKS_OF_NEW 4
#define FUTEX_WALKS_OF_NEW 1
// How far the credit may fall below zero, in units of KERNEL_MOST_CREDIT, for a walk of a new thread, and
// for one at the end of a long wait or of a very long one (ns).
#define CREDIT_OF_NEW 8
#define CREDIT_OF_LONG 8
#define CREDIT_OF_VERY_LONG 32
#define VERY_LONG 500000000ull
// If there is no time for all switches, those that are walked are drawn by their number. To take the first
// one after some time would favour switches after long waits, and would always hit the same place of a
// periodic program. In sixteenths of a switch.
#define MOST_MEAN_SKIPS (256 * 16)
static __always_inline void draw_skips(struct kernel_thread* t, int is_walked) {
  __u32 mean = t->mean_skips;
  mean = is_walked ? mean - (mean + 15) / 16 : mean * 2 + 16;
  if (mean > MOST_MEAN_SKIPS) mean = MOST_MEAN_SKIPS;
  t->mean_skips = (__u16)mean;
  t->skips = (__u16)some_of(mean / 8 + 1);
}

// When the next walk of a share is due. Unused walks are kept, and walks on the rest of the credit are
// forgotten, up to `at_once` walks.
static __always_inline __u64 next_walk(__u64 until, __u64 now, __u64 every, __u32 at_once) {
  until = (until > now ? until : now) + every / 2 + some_of(every);
  return until < now + 2 * at_once * every ? until : now + 2 * at_once * every;
}

// A thread of a recorded process leaves its CPU: records its stack and its system call. Returns whether it
// was walked.
static __always_inline int leaves(struct kernel_thread* t, struct task_struct* task, int waits, __u64 now) {
  __u32 tgid = process_id(task), tid = thread_id(task), cpu = bpf_get_smp_processor_id();
  if (t->state != KERNEL_RUNNING) came_unnoticed(t, now);
  account_run(t, not_for_tasks(task), now, waits ? KERNEL_BLOCKED : KERNEL_QUEUED);
  if (t->plain) return 0;
  t->off_since = now;
  struct pt_regs___kernel* regs = (void*)bpf_task_pt_regs(task);
  long call = REG_CALL(regs);
  t->system_call = waits && call >= 0 && call < 4096 ? (__s16)call : -1;
  t->futex = waits && CALLS_FUTEX(call) ? REG_ARGUMENT_1(regs) : 0;
  note_wait_target(t, task, t->system_call, REG_ARGUMENT_1(regs));
  t->waker.thread = 0;
  t->waker.process = 0;
  t->waker.stack = 0;
  t->waker.ended = KERNEL_ENDED_UNKNOWN;
  t->walked = 0;
  t->waits = waits != 0;
  const int is_owed = t->walks_until < now + WALKS_AT_ONCE * WALK_EVERY;
  if (t->skips && t->rare_until > now + RARE_WALKS_AT_ONCE * RARE_WALK_EVERY) {
    --t->skips;
    return 0;
  }
  struct scratch* s = bpf_map_lookup_elem(&scratches, &cpu);
  struct kernel_process* p = s && !s->busy ? bpf_map_lookup_elem(&processes, &tgid) : 0;
  if (!p || p->id != t->id) return 0;
  // Of a thread that has waited a few times only each wait may be all that it does: of servers with a thread
  // for each request.
  const int is_new = waits && t->rare_until < now + (CALLS_FUTEX(call) ? FUTEX_WALKS_OF_NEW : WALKS_OF_NEW) *
                                                        RARE_WALK_EVERY;
  if (!has_credit(p, now) && (!is_owed || p->credit < -(is_new ? CREDIT_OF_NEW : 1) * KERNEL_MOST_CREDIT)) {
    draw_skips(t, 0);
    return 0;
  }
  walk_current(s, p);
  if (s->sample.stack.state) note_gil(s, p, t, CALLS_FUTEX(call) ? REG_ARGUMENT_1(regs) : 0);
  // Whom nobody has met may wait on and on: it is found running, as it was a moment ago.
  const int is_met = t->met || (!s->sample.stack.state && !with_native);
  s->sample.head.type = is_met ? KERNEL_STACK : KERNEL_SAMPLE;
  fill_times(&s->sample, t, tid, now);
  s->sample.off_since = is_met ? now : 0;
  s->sample.system_call = is_met ? t->system_call : -1;
  s->sample.native = 0;
  if (!is_met) t->met = 1;
  send_sample(s, p);
  t->native = with_native && p->credit > KERNEL_MOST_CREDIT / 2 && native_is_due(t, now)
                  ? send_native(s, p, task, 0, t->stand_in_native, now)
                  : 0;
  s->sample.stack.flags &= ~KERNEL_FRAMES;
  t->off = s->sample.stack;
  t->walked = 1;
  t->walks_until = next_walk(t->walks_until, now, WALK_EVERY, WALKS_AT_ONCE);
  t->rare_until = next_walk(t->rare_until, now, RARE_WALK_EVERY, RARE_WALKS_AT_ONCE);
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
  if (!t->born) ran = t->ran;
  record.ran = ran;
  record.blocked = t->blocked;
  record.queued = t->queued;
  send(&record, sizeof record);
}

// On its way to its end it has no stack any more; then it leaves its CPU for good. Its record has a stack of
// its own.
static __noinline void leaves_ending(struct kernel_thread* t, struct task_struct* task, __u32 state,
                                     int preempted, __u64 now) {
  account(t, not_for_tasks_slowly(task), now, state != 0 && !preempted ? KERNEL_BLOCKED : KERNEL_QUEUED);
  t->off_since = 0;
  if (preempted || state != TASK_DEAD) return;
  send_exit(task, t, now);
  forget_thread(task);
}

// A short wait is over. If it was walked, it may represent those that are reported together next, with a
// probability in proportion to its length. If most of them are walked, it is drawn from these; otherwise it
// may represent later ones too, until another is drawn. Waits with a native half represent those without
// one.
static __always_inline void may_stand_in(struct kernel_thread* t, __u64 now) {
  if (!is_short(t, now)) return;
  if (!t->walked || (with_native ? !t->native : !t->off.state)) {
    --t->mostly_walked;
    return;
  }
  ++t->mostly_walked;
  const __u32 time = now - t->off_since;
  t->longest -= t->longest / 256;
  if (t->longest < time) t->longest = time;
  // A preempted thread does not represent a blocked one.
  if (!t->waits && t->stand_in_waits && (!t->was_mostly_walked || t->stand_in_of)) return;
  const int is_first = t->waits != t->stand_in_waits;
  t->stand_in_of = is_first ? time : t->stand_in_of + time;
  if (!is_first && some_of(t->was_mostly_walked ? t->stand_in_of : t->longest) >= time) return;
  t->stand_in_waits = t->waits;
  t->stand_in = t->off;
  t->stand_in_native = t->native;
  t->stand_in_call = t->system_call;
}

#define SEVERAL (~0u)
static __always_inline void note_woken_by(struct kernel_thread* t) {
  const __u32 by = (__u32)bpf_get_current_pid_tgid() + 1;
  t->woken_by = !t->woken_by || t->woken_by == by ? by : SEVERAL;
}

// For a wait that was not walked: the address of a futex shows whether it was for the GIL. Of several waits,
// only the last one's address is known.
static __always_inline __u16 flags_without_walk(const struct kernel_thread* t, int together) {
  if (!t->futex) return KERNEL_NOT_WALKED;
  if (together || !t->gil) return KERNEL_NOT_WALKED | KERNEL_GIL_UNKNOWN;
  return KERNEL_NOT_WALKED | (is_within(t->futex, t->gil, t->gil_size) ? KERNEL_WAITS_GIL : 0);
}

// Sends what it waited since the last report.
__noinline int send_wait(struct kernel_thread* t, __u32 tid, __u64 now) {
  if (!t) return 0;
  struct kernel_sample sample = {.head = {KERNEL_SAMPLE, t->id},
                                 .off_since = t->off_since,
                                 .native = t->native,
                                 .stack = t->off,
                                 .waker = t->waker};
  sample.system_call = t->system_call;
  if (is_short(t, now) && t->longest) {
    sample.stack = t->stand_in;
    sample.native = t->stand_in_native;
    sample.system_call = t->stand_in_call;
    if (sample.system_call != t->system_call || (t->walked && sample.stack.hash != t->off.hash))
      sample.stack.flags |= KERNEL_STANDS_IN;
  } else if (!t->walked) {
    sample.stack.count = 0;
    sample.stack.flags = flags_without_walk(t, is_short(t, now));
    sample.native = 0;
  }
  if (is_short(t, now)) sample.stack.flags |= KERNEL_TOGETHER;
  // The waker of the last wait is proved for the others only if the same thread ran when they ended.
  if (is_short(t, now) && t->woken_by == SEVERAL) sample.waker.ended = KERNEL_ENDED_UNKNOWN;
  t->woken_by = 0;
  fill_times(&sample, t, tid, now);
  t->was_mostly_walked = t->mostly_walked > 0;
  t->mostly_walked = 0;
  t->stand_in_of = 0;
  t->reported = t->blocked + t->queued + some_of(shortest_like(t) / 2);
  return send(&sample, sizeof sample);
}

// It returns to its CPU. Returns whether its wait was sent.
static __always_inline int comes(struct kernel_thread* t, struct task_struct* task, __u64 now) {
  __u64 stolen = not_for_tasks(task);
  account(t, stolen, now, KERNEL_RUNNING);
  t->stolen = stolen;
  if (!t->off_since) return 0;
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

// The stack with which a thread of a recorded process wakes another one of it.
static __always_inline void walk_waker(struct kernel_thread* t, __u64 now) {
  __u32 tgid = t->waker.process, cpu = bpf_get_smp_processor_id();
  struct kernel_process* p = is_kernel_worker(bpf_get_current_task_btf()) ? 0 : process_of(tgid);
  struct scratch* s = p && p->id == t->id ? bpf_map_lookup_elem(&scratches, &cpu) : 0;
  // The stacks of waiting threads have priority.
  if (!s || s->busy || !has_credit(p, now) || p->credit < KERNEL_MOST_CREDIT / 2) return;
  walk_current(s, p);
  s->sample.head.type = KERNEL_STACK;
  send_sample(s, p);
  t->waker.stack = s->sample.stack.count ? s->sample.stack.hash : 0;
  pay(s, p, now);
}

// For a long wait that was not walked when it began, or whose native half was not copied, and which a thread
// of the same process ends: the woken thread has not run since, and its stack is in this address space.
static __always_inline void walk_sleeper(struct kernel_thread* t, struct task_struct* task, __u64 now) {
  if (is_short(t, now) || (t->walked && (t->native || !with_native))) return;
  __u32 tgid = process_id(task), cpu = bpf_get_smp_processor_id();
  struct kernel_process* p = shares_memory(task) ? bpf_map_lookup_elem(&processes, &tgid) : 0;
  struct scratch* s = p && p->id == t->id ? bpf_map_lookup_elem(&scratches, &cpu) : 0;
  // There are at most a thousand long ones a second, and they have the most credit. Where switches are
  // expensive, waits that are only just long have none: it is for those that cannot be walked at their end.
  const __u64 time = now - t->off_since;
  const int floor = time < known.shortest_gil_wait ? 0
                    : time < VERY_LONG             ? CREDIT_OF_LONG
                                                   : CREDIT_OF_VERY_LONG;
  if (!s || (!has_credit(p, now) && p->credit < -floor * KERNEL_MOST_CREDIT)) return;
  walk_python(s, p, task);
  if (!t->walked) {
    if (s->sample.stack.state) note_gil(s, p, t, t->futex);
    s->sample.head.type = KERNEL_STACK;
    fill_times(&s->sample, t, thread_id(task), now);
    s->sample.off_since = t->off_since;
    send_sample(s, p);
    s->sample.stack.flags &= ~KERNEL_FRAMES;
    t->off = s->sample.stack;
    t->walked = 1;
    t->native = 0;
  }
  if (with_native && s->sample.stack.hash == t->off.hash)
    t->native = send_native(s, p, task, 0, t->stand_in_native, now);
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
  t->woken = (__u64)task;
  const __u64 begin = clock_now();
  const int has_stack = judge_waker(t);
  count(KERNEL_COUNT_WAIT_TIME, clock_now() - begin);
  if (has_stack) walk_waker(t, now);
  count(KERNEL_COUNT_TIME, clock_now() - now);
  return 0;
}

// The stack with which it ends, if its memory still exists (Linux 6.16 and newer): perhaps the only sample
// of a short life. The other programs may interrupt this one; then they leave its buffer alone.
static __always_inline void sample_at_end(struct kernel_process* p, struct task_struct* task,
                                          struct kernel_thread* t, __u64 now) {
  __u32 cpu = bpf_get_smp_processor_id();
  struct scratch* s = memory_of(task) && !p->plain ? bpf_map_lookup_elem(&scratches, &cpu) : 0;
  if (!s || __sync_lock_test_and_set(&s->busy, 1)) return;
  walk_current(s, p);
  if (s->sample.stack.state) {
    note_gil(s, p, 0, 0);
    s->sample.head.type = KERNEL_SAMPLE;
    fill_times(&s->sample, t, thread_id(task), now);
    s->sample.off_since = 0;
    s->sample.system_call = -1;
    s->sample.native = 0;
    send_sample(s, p);
  }
  s->busy = 0;
}

SEC("tp_btf/sched_process_exit")
int BPF_PROG(on_exit, struct task_struct* task) {
  __u32 tgid = process_id(task), tid = thread_id(task);
  struct kernel_process* p = process_of(tgid);
  if (p || bpf_map_lookup_elem(&threads, &tid)) keep_ids(task);
  if (!p) return 0;
  __u64 now = clock_now();
  struct kernel_thread* t = thread_of(p, task, now);
  if (!t) return 0;
  account(t, not_for_tasks_slowly(task), now, KERNEL_RUNNING);
  sample_at_end(p, task, t, now);
  count(KERNEL_COUNT_TIME, clock_now() - now);
  return 0;
}

// Records a process from its birth on. A process that shares its parent's memory, between vfork() and
// execve(), is no Python of its own. Returns whether there was room.
static __always_inline int begins(struct kernel_process* parent, struct task_struct* task,
                                  struct task_struct* child, __u32 id, __u64 now) {
  __u32 process = process_id(child);
  if (bpf_map_update_elem(&processes, &process, parent, BPF_ANY)) {
    count(KERNEL_COUNT_FULL, 1);
    return 0;
  }
  __sync_fetch_and_add(&known.processes[process % KERNEL_KNOWN], 1);
  struct kernel_process* born = bpf_map_lookup_elem(&processes, &process);
  if (!born) return 0;
  born->id = id;
  born->continues = 0;
  born->plain = parent->plain || memory_of(child) == memory_of(task);
  born->credit = KERNEL_MOST_CREDIT;
  born->credit_at = now;
  born->clock_credit = KERNEL_MOST_CREDIT;
  born->clock_credit_at = now;
  struct kernel_birth birth = {.head = {KERNEL_BIRTH, parent->id},
                               .id = id,
                               .process = process,
                               .parent = process_id(task),
                               .plain = born->plain,
                               .time = now};
  bpf_get_current_comm(birth.name, sizeof birth.name);
  int is_first = now - last_birth > KERNEL_NEWBORN_FOR;
  last_birth = now;
  if (send_with(&birth, sizeof birth, is_first ? BPF_RB_FORCE_WAKEUP : BPF_RB_NO_WAKEUP)) return 1;
  forget_process(process);
  return 0;
}

SEC("tp_btf/sched_process_fork")
int BPF_PROG(on_fork, struct task_struct* parent, struct task_struct* child) {
  __u32 tgid = process_id(parent), process = process_id(child), tid = thread_id(child);
  struct kernel_process* p = process_of(tgid);
  if (!p || (process != tgid && !p->follow)) return 0;
  __u64 now = clock_now();
  __u32 id = p->id, plain = p->plain;
  if (process != tgid) {
    id = __sync_fetch_and_add(&last_born, 1);
    plain = p->plain || memory_of(child) == memory_of(parent);
    if (!begins(p, parent, child, id, now)) return 0;
  }
  struct kernel_thread* t = new_thread(tid);
  if (!t) return 0;
  t->since = now;
  t->generation = known.generation;
  t->plain = plain;
  t->state = KERNEL_QUEUED;
  t->id = id;
  t->born = 1;
  t->system_call = -1;
  return 0;
}

// Describes the new program, from its new memory.
static __always_inline int send_exec(const struct kernel_process* p, struct task_struct* task,
                                     const struct kernel_thread* t, __u32 id, __u64 now) {
  struct kernel_exec* record = bpf_ringbuf_reserve(&ring, sizeof *record, 0);
  if (!record) {
    count(KERNEL_COUNT_LOST, 1);
    return 0;
  }
  __builtin_memset(record, 0, sizeof *record);
  record->ended.head.type = KERNEL_EXEC;
  record->ended.head.id = p->id;
  record->ended.thread = thread_id(task);
  record->ended.first = 1;
  record->ended.time = now;
  record->ended.ran = t->ran;
  record->ended.blocked = t->blocked;
  record->ended.queued = t->queued;
  record->id = id;
  struct mm_struct* memory = memory_of(task);
  struct inode* inode = BPF_CORE_READ(memory, exe_file, f_inode);
  record->inode = BPF_CORE_READ(inode, i_ino);
  record->device = BPF_CORE_READ(inode, i_sb, s_dev);
  __u64 from = BPF_CORE_READ(memory, arg_start), size = BPF_CORE_READ(memory, arg_end) - from;
  __u32 some = at_most(size, KERNEL_ARGUMENT_BYTES);
  if (!bpf_probe_read_user(record->text, some, (void*)from)) record->arguments = some;
  // A Python may start there and end soon: the search for it must begin at once.
  bpf_ringbuf_submit(record, BPF_RB_FORCE_WAKEUP);
  return 1;
}

SEC("tp_btf/sched_process_exec")
int BPF_PROG(on_exec, struct task_struct* task) {
  __u32 tgid = process_id(task);
  struct kernel_process* p = process_of(tgid);
  if (!p) return 0;
  __u64 now = clock_now();
  struct kernel_thread* t = thread_of(p, task, now);
  __u32 id = __sync_fetch_and_add(&last_born, 1);
  if (t) account(t, not_for_tasks_slowly(task), now, KERNEL_RUNNING);
  if (!t || !send_exec(p, task, t, id, now)) {
    forget_process(tgid);
    return 0;
  }
  t->id = p->id = id;
  t->off_since = t->gil = 0;
  t->plain = p->plain = 1;
  p->continues = 0;
  return 0;
}

// ---- signals that end a program by default

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
static __always_inline void sample_at_signal(struct scratch* s, struct kernel_process* p,
                                             struct task_struct* task, __u64 now) {
  if (p->plain || s->busy || is_kernel_worker(task) || (task->flags & PF_EXITING)) return;
  if (!has_credit(p, now) && p->credit < -CREDIT_OF_VERY_LONG * KERNEL_MOST_CREDIT) return;
  struct kernel_thread* t = thread_of(p, task, now);
  if (!t) return;
  sample_current(s, p, t, task, 0, not_for_tasks_slowly(task), now);
  pay(s, p, now);
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
  if (ends_with(task, signal)) record->flags |= KERNEL_SIGNAL_ENDS;
  send(record, sizeof *record);
  struct kernel_process* sender = from ? process_of(from) : 0;
  if (!sender) return 0;
  sample_at_signal(s, sender, by, now);
  record = begin_signal(s, sender, signal, KERNEL_SIGNAL_SENT, now);
  record->thread = thread_id(by);
  record->other = to;
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
  sample_at_signal(s, p, task, now);
  struct kernel_signal* record = begin_signal(s, p, signal, KERNEL_SIGNAL_DELIVERED, now);
  record->thread = thread_id(task);
  if ((__u64)BPF_CORE_READ(action, sa.sa_handler) > 1) record->flags |= KERNEL_SIGNAL_HANDLED;
  if (bpf_core_field_exists(task->signal->oom_mm) && BPF_CORE_READ(task, signal, oom_mm))
    record->flags |= KERNEL_SIGNAL_NO_MEMORY;
  send(record, sizeof *record);
  count(KERNEL_COUNT_TIME, clock_now() - now);
  return 0;
}
