// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// A thread's own thread state of Python (PyThreadState).
#pragma once

#include "maps.bpf.h"

struct search {
  struct scratch* s;
  const struct kernel_process* p;
};

static __always_inline __u64 word_at(__u64 at) {
  __u64 word = 0;
  return is_plausible(at) && !bpf_probe_read_user(&word, 8, (void*)at) ? word : 0;
}

// Takes one state of the interpreters' lists, or goes on to the next list.
static long sample_of_state(__u32 index, struct search* search) {
  struct walk* w = &search->s->walk;
  const struct kernel_process* p = search->p;
  if (!w->at) {
    if (p->python.interp.next == KERNEL_ABSENT) return 1;
    w->interpreter = word_at(w->interpreter + p->python.interp.next);
    if (!w->interpreter) return 1;
    w->at = word_at(w->interpreter + p->python.interp.threads);
    return 0;
  }
  if (word_at(w->at + p->python.thread.id) == w->thread) {
    w->state = w->at;
    return 1;
  }
  w->at = word_at(w->at + p->python.thread.next);
  return 0;
}

// Whether it is still in a list, and belongs to this thread.
static __always_inline int is_own(const struct kernel_process* p, __u64 state, __u64 thread) {
  if (!state || word_at(state + p->python.thread.id) != thread) return 0;
  __u64 before = word_at(state + p->python.thread.prev);
  return before ? word_at(before + p->python.thread.next) == state
                : word_at(word_at(state + p->python.thread.interp) + p->python.interp.threads) == state;
}

// The newest state is first in the list, so a new thread's state is found soon, and is then kept. If a thread
// has none, the search is repeated after a while, or when there is a newer one: threads of C never have one.
static __always_inline void find_listed(struct scratch* s, const struct kernel_process* p,
                                        struct kernel_thread* t) {
  struct walk* w = &s->walk;
  if (t && is_own(p, t->found.state, w->thread)) {
    w->state = t->found.state;
    return;
  }
  w->interpreter = word_at(p->python.interpreters);
  __u64 newest = w->at = word_at(w->interpreter + p->python.interp.threads), now = clock_now();
  if (t && t->found.newest == newest && now < t->found.again) return;
  struct search search = {s, p};
  bpf_loop(KERNEL_MOST_STATES, sample_of_state, &search, 0);
  if (!t) return;
  t->found.state = w->state;
  t->found.pause = w->state || t->found.newest != newest ? 1000000
                   : t->found.pause < 64000000           ? t->found.pause * 2
                                                         : t->found.pause;
  t->found.newest = newest;
  t->found.again = now + t->found.pause;
}

// For the thread in s->walk, into s->walk.state; 0: it has none.
int find_state(struct scratch* s, const struct kernel_process* p) {
  if (!s || !p) return 0;
  struct walk* w = &s->walk;
  __u32 tid = w->tid;
  struct kernel_thread* t = bpf_map_lookup_elem(&threads, &tid);
  if (t && t->id != p->id) t = 0;
  barrier_var(t);  // else the two questions become one, which the verifier does not follow
  w->state = 0;
  if (p->python.state.how == KERNEL_STATE_LISTED) {
    find_listed(s, p, t);
  } else {
    w->state = word_at(w->thread + p->python.state.offset);
    if (p->python.state.how == KERNEL_STATE_INDIRECT) w->state = word_at(w->state + p->python.state.index);
  }
  return 0;
}
