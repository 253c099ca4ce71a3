// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// The native half of a stack (--native): registers, the kernel's own frames, where evaluations of the
// interpreter loop begin, and the bytes of the C stack. Unwound by the recorder (assemble/native_stacks.h).
#pragma once

#include "ids.bpf.h"

// Set by the loader.
const volatile __u32 with_native SEC(".rodata.native") = 0;

#define STARTS_FROM (KERNEL_KERNEL_FRAMES * 8)
#define STACK_FROM_AT_MOST (STARTS_FROM + KERNEL_MAX_STARTS * 8)
#define RED_ZONE 128
#define PAGE 4096
// At switches a thread may have this many native halves at once, and then one in this many ns: enough for
// every wait with its own record.
#define NATIVE_EVERY 200000
#define NATIVE_AT_ONCE 50

// Sent in one piece, up to its filled size.
struct native_half {
  struct kernel_native head;
  __u8 bytes[STACK_FROM_AT_MOST + KERNEL_STACK_BYTES];
};
// One element for each CPU, set by the loader; a single one without native halves.
struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(max_entries, 1);
  __type(key, __u32);
  __type(value, struct native_half);
} natives SEC(".maps");

// Called for each frame: where evaluations begin, as capture/stack_reader.cpp notes them.
static __always_inline void note_start(struct scratch* s, const struct kernel_process* p, __u64 at,
                                       __u64 code, __u32 entry) {
  struct walk* w = &s->walk;
  if (!w->inner) w->inner = at;
  if (!entry || (p->python.frame.base == KERNEL_BASE_IS_ENTRY && !code)) return;
  __u64 address = p->python.frame.base == KERNEL_BASE_IS_ENTRY ? w->inner : at;
  w->inner = 0;
  __u32 n = w->starts;
  if (n >= KERNEL_MAX_STARTS) return;
  s->starts[n & (KERNEL_MAX_STARTS - 1)] = address << 16 | (w->count & 0xffff);
  w->starts = n + 1;
}

static __always_inline int native_is_due(struct kernel_thread* t, __u64 now) {
  if (t->walks.native_due > now + NATIVE_AT_ONCE * NATIVE_EVERY) return 0;
  t->walks.native_due = (t->walks.native_due > now ? t->walks.native_due : now) + NATIVE_EVERY;
  return 1;
}

// How many bytes of the stack that begins there are worth copying. glibc's and musl's thread pointer is at
// the top of a thread's stack; the kernel knows where the first thread's stack began.
static __always_inline __u32 stack_size(struct task_struct* task, __u64 start) {
  __u64 most = KERNEL_LOST_STACK_BYTES;
  __u64 block = THREAD_POINTER(task);
  __u64 first = BPF_CORE_READ(memory_of(task), start_stack);
  // The nearest of the two above it, if that does not belong to another stack.
  if (block > start && block - start < 1ull << 30) {
    most = block - start;
  } else if (first > start && first - start < 1ull << 30) {
    most = first - start;
  }
  return at_most(most, KERNEL_STACK_BYTES) & ~7u;
}

// For the thread that runs on this CPU.
static __always_inline int shares_memory(struct task_struct* task) {
  struct task_struct* current = bpf_get_current_task_btf();
  struct mm_struct* mm = memory_of(task);
  return mm && mm == memory_of(current);
}

struct page_copy {
  struct native_half* half;
  __u64 start;
  __u32 from, done, size;
};

static long copy_page(__u32 index, struct page_copy* c) {
  struct native_half* half = c->half;
  if (!half || c->done >= c->size) return 1;
  __u64 at = c->start + c->done;
  __u32 left = c->size - c->done, size = PAGE - (at & (PAGE - 1));
  if (size > left) size = left;
  __u32 into = at_most((__u64)c->from + c->done, sizeof half->bytes - PAGE);
  size = at_most(size, PAGE);
  if (bpf_probe_read_user(half->bytes + into, size, (void*)at)) return 1;
  c->done += size;
  return 0;
}

// Up to the first missing page.
static __always_inline __u32 copy_pages(struct native_half* half, __u32 from, __u64 start, __u32 size) {
  struct page_copy copy = {half, start, from, 0, size};
  bpf_loop(KERNEL_STACK_BYTES / PAGE + 1, copy_page, &copy, 0);
  return at_most(copy.done, KERNEL_STACK_BYTES);
}

// For a thread of the current process, whose Python frames were just walked. Returns its time; 0: it was not
// sent. Verified at each of its few calls, because a global function cannot take a thread as an argument.
static __noinline __u64 send_half(struct scratch* s, const struct kernel_process* p, struct native_half* half,
                                  struct task_struct* task, __u64 now) {
  struct pt_regs___kernel* regs = (void*)bpf_task_pt_regs(task);
  struct kernel_native* head = &half->head;
  head->head.type = KERNEL_NATIVE;
  head->head.id = p->id;
  head->thread = thread_id(task);
  head->time = now;
  head->pc = REG_PC(regs);
  head->sp = regs->sp;
  head->fp = REG_FP(regs);
  head->lr = REG_LR(regs);
  head->bx = REG_BX(regs);
  if (!is_plausible(head->pc) || !is_plausible(head->sp)) return 0;
  __u32 starts = s->sample.stack.count ? at_most(s->walk.starts, KERNEL_MAX_STARTS) * 8 : 0;
  __u32 from = at_most(head->kernel, KERNEL_KERNEL_FRAMES) * 8;
  bpf_probe_read_kernel(half->bytes + from, starts, s->starts);
  head->starts = starts / 8;
  head->cframe = 0;
  if (s->sample.stack.state && p->python.thread.cframe != KERNEL_ABSENT)
    bpf_probe_read_user(&head->cframe, 8, (void*)(s->sample.stack.state + p->python.thread.cframe));
  from = at_most(from + starts, STACK_FROM_AT_MOST);
  __u64 start = (head->sp - RED_ZONE) & ~7ull;
  __u32 size = stack_size(task, start);
  head->stack_start = start;
  if (bpf_probe_read_user(half->bytes + from, size, (void*)start))
    size = copy_pages(half, from, start, size) & ~7u;
  head->stack = size;
  if (!size || !send(half, sizeof *head + at_most(from + size, sizeof half->bytes))) return 0;
  return now;
}

// `context`: of the clock's interrupt, which may have hit the kernel; 0: none, and no kernel frames.
// `keep`: as in kernel_native.
static __always_inline __u64 send_native(struct scratch* s, const struct kernel_process* p,
                                         struct task_struct* task, struct bpf_perf_event_data* context,
                                         __u64 keep, __u64 now) {
  __u32 cpu = bpf_get_smp_processor_id();
  __u16 end = s->sample.stack.end;
  if (end == KERNEL_END_UNREADABLE || end == KERNEL_END_BROKEN) return 0;
  struct native_half* half = bpf_map_lookup_elem(&natives, &cpu);
  if (!half) return 0;
  long size = 0;
  if (context && !HIT_USER(context)) size = bpf_get_stack(context, half->bytes, KERNEL_KERNEL_FRAMES * 8, 0);
  half->head.kernel = size > 0 ? size / 8 : 0;
  half->head.away = !context;
  half->head.keep = keep;
  return send_half(s, p, half, task, now);
}
