// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// What sampling may cost. Each process has two credits, which grow with time and pay for walks: one for those
// on the clock, and one for those at switches and wake-ups. If there is no time for all switches, it is drawn
// which of a thread's switches are walked.
#pragma once

#include "trace.bpf.h"

// ns. A longer walk was interrupted, or the host ran something else, which is not the program's fault. A
// walk has more time for each frame that is walked, and for each that is kept.
#define LONGEST_WALK 500000
#define LONGEST_STEP 512
#define LONGEST_PROOF 4096
static __always_inline __u32 longest_paid(const struct scratch* s) {
  return LONGEST_WALK + at_most(s->walk.steps, KERNEL_MOST_STEPS) * LONGEST_STEP +
         at_most(s->walk.kept, KERNEL_MAX_FRAMES) * LONGEST_PROOF;
}

// Whether there is enough for a walk; the caller subtracts its cost. So an expensive sample of the clock is
// followed by a pause before the recorder can lower the rate.
static __always_inline int has_credit(struct kernel_credit* credit, __u64 now) {
  // Another CPU may have added later time already.
  if (now > credit->at) {
    const __s64 left = credit->left + (__s64)((now - credit->at) * credit->share / 1000);
    credit->left = left > KERNEL_MOST_CREDIT ? KERNEL_MOST_CREDIT : left;
    credit->at = now;
  }
  return credit->left >= 0;
}

static __always_inline void pay(const struct scratch* s, struct kernel_process* p, __u64 since) {
  const __s64 time = (__s64)at_most(clock_now() - since, longest_paid(s));
  p->walks.left -= time;
  // The rest of the budget belongs to the clock, whatever is walked at switches on credit.
  if (p->clock.left > -KERNEL_MOST_CREDIT) p->clock.left -= time;
}

// Whether a wait that begins will be long is not known. So each thread has a share of the walks, and may use
// some at once, on credit, before threads that leave their CPU all the time get more.
#define WALK_EVERY 4000000ull
#define WALKS_AT_ONCE 16
// No switch of a thread is skipped that is walked less often than this, unless the thread also left its CPU
// less than FREQUENT ns before. Otherwise the first switch after the credit has recovered would always be
// walked: in a periodic program, the same one of each round.
#define RARE_WALK_EVERY 32000000ull
#define RARE_WALKS_AT_ONCE 8
#define FREQUENT 4000000ull
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
  __u32 mean = t->walks.mean_skips;
  mean = is_walked ? mean - (mean + 15) / 16 : mean * 2 + 16;
  if (mean > MOST_MEAN_SKIPS) mean = MOST_MEAN_SKIPS;
  t->walks.mean_skips = (__u16)mean;
  t->walks.skips = (__u16)some_of(mean / 8 + 1);
}

// When the next walk of a share is due. Unused walks are kept, and walks on the rest of the credit are
// forgotten, up to `at_once` walks.
static __always_inline __u64 next_walk(__u64 until, __u64 now, __u64 every, __u32 at_once) {
  until = (until > now ? until : now) + every / 2 + some_of(every);
  return until < now + 2 * at_once * every ? until : now + 2 * at_once * every;
}
