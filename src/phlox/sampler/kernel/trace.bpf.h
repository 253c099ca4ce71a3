// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Which span of a distributed trace a thread works for, if its process publishes that:
// OpenTelemetry's thread context (process/thread_context.h). Read while the thread cannot run, as its
// protocol requires.
#pragma once

#include "thread.bpf.h"

// The fixed beginning of a thread's record.
struct published {
  struct kernel_trace_ids ids;
  __u8 valid, flags;
  __u16 more;
};
#define PUBLISHED_BYTES 28

static __always_inline __u64 variable_of(const struct kernel_slot* slot, __u64 pointer) {
  __u64 vector = 0, count = 0, block = 0;
  if (!slot->module) return pointer + slot->offset;
  if (bpf_probe_read_user(&vector, 8, (void*)(pointer + slot->vector)) ||
      bpf_probe_read_user(&count, 8, (void*)(vector + slot->count)) || slot->module > count ||
      bpf_probe_read_user(&block, 8, (void*)(vector + (__u64)slot->module * slot->entry)) ||
      !is_plausible(block))
    return 0;
  return block + slot->offset;
}

// Its number, which is sent with the ids if they are new. `id`: of its process. `tid`, `pointer`: the thread,
// which runs here, or is off its CPU and shares the memory of the one that runs; and its thread pointer. 0:
// none.
__noinline __u32 find_trace(struct kernel_thread* t, __u32 id, __u32 tid, __u64 pointer) {
  if (!t) return 0;
  t->trace.now = 0;
  if (!known.slots) return 0;
  __u32 process = process_id(bpf_get_current_task_btf());
  const struct kernel_slot* slot = bpf_map_lookup_elem(&slots, &process);
  if (!slot || slot->id != id) return 0;
  const __u64 variable = variable_of(slot, pointer);
  __u64 record = 0;
  struct published now = {};
  if (bpf_probe_read_user(&record, 8, (void*)variable) || !is_plausible(record) ||
      bpf_probe_read_user(&now, PUBLISHED_BYTES, (void*)record))
    return 0;
  if (now.valid != 1 || !now.ids.span || !(now.ids.trace[0] | now.ids.trace[1])) return 0;
  struct kernel_trace_ids* last = &t->trace.ids;
  if (t->trace.number && last->span == now.ids.span && last->trace[0] == now.ids.trace[0] &&
      last->trace[1] == now.ids.trace[1])
    return t->trace.now = t->trace.number;
  struct kernel_trace send_it = {.head = {KERNEL_TRACE, id}, .thread = tid};
  send_it.number = t->trace.number + 1 ? t->trace.number + 1 : 1;
  send_it.ids = now.ids;
  if (!send(&send_it, sizeof send_it)) return 0;
  t->trace.ids = now.ids;
  t->trace.number = send_it.number;
  return t->trace.now = send_it.number;
}

static __always_inline __u32 trace_of(struct kernel_thread* t, __u32 id, struct task_struct* task) {
  return find_trace(t, id, thread_id(task), THREAD_POINTER(task));
}
