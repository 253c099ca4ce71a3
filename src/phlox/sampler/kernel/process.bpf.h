// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Births, new programs and ends of recorded processes and their threads.
#pragma once

#include "thread.bpf.h"

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
  born->walks.left = KERNEL_MOST_CREDIT;
  born->walks.at = now;
  born->clock.left = KERNEL_MOST_CREDIT;
  born->clock.at = now;
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
  t->off.system_call = -1;
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
  record->ended.ran = t->sums.ran;
  record->ended.blocked = t->sums.blocked;
  record->ended.queued = t->sums.queued;
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
  t->off.since = t->gil.at = 0;
  t->plain = p->plain = 1;
  p->continues = 0;
  return 0;
}
