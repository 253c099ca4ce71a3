// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// The ids of threads and processes as the recorder sees them. In the initial PID namespace they are the
// kernel's own. Otherwise (in a container) a task has an id in each namespace from its own up to the initial
// one (include/linux/pid.h). A task outside the recorder's namespace has none there: 0.
#pragma once

#include "maps.bpf.h"

// Set by the loader.
const volatile struct kernel_namespace pid_namespace SEC(".rodata.namespace") = {};

// The address and the depth of that namespace, from the first task in it. The depth is written first.
__u32 namespace_level = 0;
__u64 namespace_at = 0;

// The ids of threads that are ending: the kernel detaches them from a task before it leaves its CPU for good.
struct ids {
  __u32 process, thread;
};
struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(max_entries, 1);  // in a PID namespace the loader asks for more
  __type(key, __u32);
  __type(value, struct ids);
} ending SEC(".maps");

// include/linux/pid_namespace.h: MAX_PID_NS_LEVEL
#define MOST_LEVELS 32

struct numbered {
  int nr;
  struct pid_namespace* ns;
};
static __always_inline struct numbered number_at(struct pid* pid, __u32 level) {
  struct upid* at = (void*)pid + bpf_core_field_offset(struct pid, numbers) +
                    (__u64)level * bpf_core_type_size(struct upid);
  return (struct numbered){BPF_CORE_READ(at, nr), BPF_CORE_READ(at, ns)};
}

static __always_inline void find_namespace(struct pid* pid, __u32 deepest) {
  for (__u32 level = 1; level <= MOST_LEVELS && level <= deepest; ++level) {
    struct pid_namespace* ns = number_at(pid, level).ns;
    if (!ns || BPF_CORE_READ(ns, ns.inum) != pid_namespace.inode) continue;
    namespace_level = level;
    barrier();
    namespace_at = (__u64)ns;
  }
}

static __noinline __u32 number_in_namespace(struct pid* pid) {
  if (!pid) return 0;
  const __u32 deepest = BPF_CORE_READ(pid, level);
  if (!namespace_at) find_namespace(pid, deepest);
  const __u32 level = namespace_level;
  if (!namespace_at || level > deepest) return 0;
  const struct numbered number = number_at(pid, level);
  return (__u64)number.ns == namespace_at ? (__u32)number.nr : 0;
}

static __always_inline __u32 number_of(struct pid* pid) {
  if (pid_namespace.inode) return number_in_namespace(pid);
  return pid ? (__u32)BPF_CORE_READ(pid, numbers[0].nr) : 0;
}

// The id of the task, or of its process.
static __noinline __u32 id_in_namespace(struct task_struct* task, int is_process) {
  struct pid* own = BPF_CORE_READ(task, thread_pid);
  const __u32 key = task->pid;
  struct ids* kept = own ? 0 : bpf_map_lookup_elem(&ending, &key);
  if (kept) return is_process ? kept->process : kept->thread;
  return number_in_namespace(is_process ? BPF_CORE_READ(task, group_leader, thread_pid) : own);
}

static __always_inline __u32 thread_id(struct task_struct* task) {
  return pid_namespace.inode ? id_in_namespace(task, 0) : task->pid;
}

static __always_inline __u32 process_id(struct task_struct* task) {
  return pid_namespace.inode ? id_in_namespace(task, 1) : task->tgid;
}

// For a task that begins to end.
static __always_inline void keep_ids(struct task_struct* task) {
  if (!pid_namespace.inode) return;
  const __u32 key = task->pid;
  const struct ids ids = {process_id(task), thread_id(task)};
  bpf_map_update_elem(&ending, &key, &ids, BPF_ANY);
}

static __always_inline void drop_ids(struct task_struct* task) {
  if (!pid_namespace.inode) return;
  const __u32 key = task->pid;
  bpf_map_delete_elem(&ending, &key);
}
