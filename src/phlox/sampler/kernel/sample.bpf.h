// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Sends a stack, with its frames only the first time, and notes whether its thread held the GIL or waited for
// it.
#pragma once

#include "walk.bpf.h"

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
  __u64 gil = p->python.gil.at, holder = 0;
  __u32 word = 0;
  if (!gil && p->python.interp.gil != KERNEL_ABSENT)
    bpf_probe_read_user(&gil, 8, (void*)(stack->interpreter + p->python.interp.gil));
  if (gil && !bpf_probe_read_user(&holder, 8, (void*)(gil + p->python.gil.holder)) && holder == stack->state)
    stack->flags |= KERNEL_HELD_GIL;
  if ((stack->flags & KERNEL_HELD_GIL) &&
      !bpf_probe_read_user(&word, 4, (void*)(gil + p->python.gil.locked)) && word == 1)
    stack->flags |= KERNEL_HOLDS_GIL;
  else if (is_within(futex, gil, p->python.gil.size))
    stack->flags |= KERNEL_WAITS_GIL;
  if (t) {
    t->gil.at = gil;
    t->gil.size = p->python.gil.size;
  }
  word = 0;
  if ((stack->flags & KERNEL_HOLDS_GIL) && p->python.interp.collecting != KERNEL_ABSENT &&
      !bpf_probe_read_user(&word, 4, (void*)(stack->interpreter + p->python.interp.collecting)) && word == 1)
    stack->flags |= KERNEL_COLLECTING;
}
