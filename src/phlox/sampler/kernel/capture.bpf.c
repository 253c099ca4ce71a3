// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Runs in the kernel. On the CPU clock of each CPU, and when a thread of a recorded process leaves its CPU,
// walks that thread's Python frames in its own address space while it cannot run. It reads nothing of
// processes that are not in the map `processes`. It reads the target, writes nothing into it, and waits for
// nothing; a missing page is a failed read, and the sample says so.
//
// The walk follows python/frame_walk.h, the proof of a code object python/code_object.h; both read their
// offsets from the process's row of the layout table. The kernel verifies functions that are not static
// once, and not again for each path to them. Verifying takes most of the time of loading.
//
// The programs, by what starts them:
//   the CPU clock of a CPU         clock.bpf.h
//   a switch to another thread     switch.bpf.h
//   a thread is woken              waking.bpf.h
//   fork, exec, the end            process.bpf.h
//   a signal                       signal.bpf.h
#include "wait_target.bpf.h"
#include "waker.bpf.h"

#include "clock.bpf.h"
#include "switch.bpf.h"
#include "waking.bpf.h"
#include "process.bpf.h"
#include "signal.bpf.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";
