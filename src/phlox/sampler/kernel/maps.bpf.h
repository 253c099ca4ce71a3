// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// The maps of the capture inside the kernel, the working memory of a CPU, and small helpers.
#pragma once

#include <stdbool.h>

#include <asm-generic/errno-base.h>
#include <linux/bpf.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "machine.bpf.h"
#include "wire.h"

// ---- the kernel's own structs: fields by name, relocated when loading (CO-RE)
#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct rq {
  unsigned long long clock, clock_task;
};
struct cfs_rq {
  struct rq* rq;
};
struct sched_entity {
  unsigned long long sum_exec_runtime;
  struct cfs_rq* cfs_rq;
};
struct super_block {
  unsigned int s_dev;
  unsigned long s_magic;
};
struct inode {
  unsigned short i_mode;
  struct super_block* i_sb;
  unsigned long i_ino;
  void* i_private;
};
struct path {
  struct vfsmount* mnt;
  struct dentry* dentry;
};
struct file {
  unsigned int f_mode;
  struct path f_path;
  struct inode* f_inode;
  void* private_data;
};
struct mm_struct {
  struct file* exe_file;
  unsigned long start_stack, arg_start, arg_end;
};
struct fdtable {
  unsigned int max_fds;
  struct file** fd;
};
struct files_struct {
  struct fdtable* fdt;
};
struct sched_info {
  unsigned long long last_arrival;
};
typedef struct {
  unsigned long sig[1];
} sigset_t;
struct sigpending {
  sigset_t signal;
};
struct signal_struct {
  struct sigpending shared_pending;
  struct mm_struct* oom_mm;
  unsigned int flags;
  int group_exit_code;
};
struct ns_common {
  unsigned int inum;
};
struct pid_namespace {
  struct ns_common ns;
};
struct upid {
  int nr;
  struct pid_namespace* ns;
};
struct pid {
  unsigned int level;
  struct upid numbers[1];
};
struct task_struct {
#if defined(__TARGET_ARCH_arm64)
  struct thread_info thread_info;
#endif
  unsigned int __state;
  void* stack;
  struct mm_struct* mm;
  struct files_struct* files;
  unsigned int flags;
  int pid, tgid;
  struct pid* thread_pid;
  struct task_struct* group_leader;
  char comm[16];
  struct task_struct* real_parent;
  int* clear_child_tid;
  struct signal_struct* signal;
  sigset_t blocked;
  struct sigpending pending;
  unsigned long jobctl;
  void* task_works;
  int softirq_disable_cnt;
  struct sched_entity se;
  struct sched_info sched_info;
  struct thread_struct thread;
};
#pragma clang attribute pop

// ---- maps
#define BYTES_NAME KERNEL_STRUCT_BYTES
#define BYTES_QUALNAME (BYTES_NAME + KERNEL_NAME_BYTES)
#define BYTES_FILE (BYTES_QUALNAME + KERNEL_NAME_BYTES)
#define BYTES_HEAD (BYTES_FILE + KERNEL_FILE_BYTES)
#define BYTES_LINES (BYTES_HEAD + KERNEL_HEAD_BYTES)

#define SEEN 4096
#define CONTENT 128

struct known_code {
  __u64 word[KERNEL_PROOF_WORDS];
  __u64 contents;
  __u64 serial;
};
struct key {
  __u64 what, id;
};
// The walk along one stack. It is in a map, whose values the verifier does not track: on our stack it would
// follow every counter through every iteration, which takes a second of loading.
struct walk {
  __u64 at, outer, checkpoint, epoch, hash;
  __u64 thread, interpreter, state;  // the thread pointer, and what is found by it
  __u32 tid;
  __u64 below;  // versions of code objects that were made by now are; where the epoch counts these
  __u32 steps, next_checkpoint, count, kept, end;
  __u32 base, only_entries, checked, stopped, not_read;
  __u64 until;   // when it is cut
  __u64 inner;   // of the evaluation that is walked, the innermost frame; 0: the next one is
  __u32 starts;  // of evaluations
};
// The working memory of one CPU.
struct scratch {
  struct walk walk;
  // Sent in one piece.
  struct kernel_sample sample;
  __u64 frames[KERNEL_MAX_FRAMES];
  __u64 codes[KERNEL_MAX_FRAMES];
  __u64 instrs[KERNEL_MAX_FRAMES];
  __u32 tlbc[KERNEL_MAX_FRAMES];
  __u64 starts[KERNEL_MAX_STARTS];
  __u8 header[KERNEL_HEADER_BYTES];
  __u64 proof[KERNEL_PROOF_WORDS];
  __u8 text[KERNEL_HEADER_BYTES];
  __u64 content[CONTENT / 8];
  struct {
    struct kernel_code head;
    __u8 bytes[BYTES_LINES + KERNEL_LINES_BYTES];
  } code;
  struct kernel_signal signal;
  __u32 busy;      // with a walk that may be interrupted
  __u32 switches;  // that were only counted
  // Proved in this epoch of the interpreter: no code object was made since (python::code_epoch).
  struct {
    __u64 code, epoch, serial;
  } seen[SEEN];
};

struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(max_entries, 2048);
  __type(key, __u32);
  __type(value, struct kernel_process);
} processes SEC(".maps");
struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(max_entries, 32768);
  __type(key, __u32);
  __type(value, struct kernel_thread);
} threads SEC(".maps");
struct {
  __uint(type, BPF_MAP_TYPE_LRU_HASH);
  __uint(max_entries, 65536);
  __type(key, struct key);
  __type(value, struct known_code);
} codes SEC(".maps");
struct {
  __uint(type, BPF_MAP_TYPE_LRU_HASH);
  __uint(max_entries, 65536);
  __type(key, struct key);
  __type(value, __u32);
} stacks SEC(".maps");
// One element for each CPU, set by the loader: larger than an element of a per-CPU array may be.
struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(max_entries, 1);
  __type(key, __u32);
  __type(value, struct scratch);
} scratches SEC(".maps");
struct {
  __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
  __uint(max_entries, KERNEL_COUNTS);
  __type(key, __u32);
  __type(value, __u64);
} counts SEC(".maps");
struct {
  __uint(type, BPF_MAP_TYPE_RINGBUF);
  __uint(max_entries, 16 << 20);
} ring SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(max_entries, 2048);
  __type(key, __u32);
  __type(value, struct kernel_slot);
} slots SEC(".maps");

// include/linux/sched.h: it is ending, and its memory is being freed; threads of the kernel, inside a process
// and on their own.
#define PF_EXITING 0x4
#define PF_IO_WORKER 0x10
#define PF_USER_WORKER 0x4000
#define PF_KTHREAD 0x200000
#define TASK_DEAD 0x80

// Waits shorter than shortest_wait are summed until they are as long together.
struct kernel_known known SEC(".data.known") = {.shortest_wait = 1000000, .shortest_gil_wait = 1000000};

// The recorder's clock; the recorder may be in a time namespace.
static __always_inline __u64 clock_now(void) {
  return bpf_ktime_get_ns() + known.clock_offset;
}
__u32 last_serial = 0;  // of code objects, ever
__u32 last_born = KERNEL_FIRST_BORN;
__u64 last_birth = 0;  // when

static __always_inline struct kernel_process* process_of(__u32 process) {
  if (!known.processes[process % KERNEL_KNOWN]) return 0;
  return bpf_map_lookup_elem(&processes, &process);
}

static __always_inline void forget_process(__u32 process) {
  if (!bpf_map_delete_elem(&processes, &process))
    __sync_fetch_and_add(&known.processes[process % KERNEL_KNOWN], -1);
}

static __always_inline void count(__u32 what, __u64 more) {
  __u64* value = bpf_map_lookup_elem(&counts, &what);
  if (value) *value += more;
}

// The sum of the time in which the CPU of a running task ran no task: time that the hypervisor gave to others
// (steal), and interrupts if the kernel accounts for them. The scheduler's CPU times exclude it
// (kernel/sched/core.c: update_rq_clock_task); for the last tick it is known only at the next one. Every task
// has a cfs_rq, whatever its class, if groups of tasks are scheduled (CONFIG_FAIR_GROUP_SCHED).
static __always_inline __u64 not_for_tasks(struct task_struct* task) {
  if (!bpf_core_field_exists(task->se.cfs_rq) || !bpf_core_field_exists(((struct cfs_rq*)0)->rq)) return 0;
  struct cfs_rq* queue = task->se.cfs_rq;
  struct rq* rq = queue ? queue->rq : 0;
  return rq ? rq->clock - rq->clock_task : 0;
}

// For a pointer that is loaded from a task, the verifier searches the names of all kernel types four times
// (btf_nested_type_is_trusted), which takes a millisecond. So it is read differently where speed does not
// matter.
static __always_inline __u64 not_for_tasks_slowly(struct task_struct* task) {
  if (!bpf_core_field_exists(task->se.cfs_rq) || !bpf_core_field_exists(((struct cfs_rq*)0)->rq)) return 0;
  struct cfs_rq* queue = 0;
  bpf_probe_read_kernel(&queue, 8, &task->se.cfs_rq);
  struct rq* rq = BPF_CORE_READ(queue, rq);
  return rq ? BPF_CORE_READ(rq, clock) - BPF_CORE_READ(rq, clock_task) : 0;
}

// A number to compare, or an address to read at.
static __always_inline struct mm_struct* memory_of(struct task_struct* task) {
  struct mm_struct* mm = 0;
  bpf_probe_read_kernel(&mm, 8, &task->mm);
  return mm;
}

static __always_inline __u64 mix(__u64 hash, __u64 word) {
  hash = (hash ^ word) * 0x9E3779B97F4A7C15ull;
  return hash ^ hash >> 29;
}

static __always_inline int is_plausible(__u64 address) {
  return address >= 4096 && address >> 48 == 0;
}

// In one register, so that the verifier sees the bound where it is used.
static __always_inline __u32 at_most(__u64 value, __u32 most) {
  barrier_var(value);
  if (value > most) value = most;
  barrier_var(value);
  return (__u32)value;
}

static __always_inline int send_with(const void* record, __u32 size, __u64 wakeup) {
  if (bpf_ringbuf_output(&ring, (void*)record, size, wakeup) == 0) return 1;
  count(KERNEL_COUNT_LOST, 1);
  return 0;
}

static __always_inline int send(const void* record, __u32 size) {
  return send_with(record, size, BPF_RB_NO_WAKEUP);
}
