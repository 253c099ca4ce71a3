/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What the program in the kernel and the recorder say to each other: the maps' values, and the records of the
 * ring. C, for both include it. Every length in a record is checked by whoever reads it (kernel_records.h).
 */
#ifndef PHLOX_SAMPLER_KERNEL_WIRE_H
#define PHLOX_SAMPLER_KERNEL_WIRE_H

#include <linux/types.h>

enum {
  KERNEL_MAX_FRAMES = 2048,  /* of one stack, a power of two: of a deeper one half at each end */
  KERNEL_MOST_STEPS = 65536, /* of one walk, entry frames included. Then it is cut at the root */
  KERNEL_PROOF_WORDS = 12,   /* of a code object, compared at each sample */
  KERNEL_STRUCT_BYTES = 256,
  KERNEL_NAME_BYTES = 512, /* a string with its head; beyond it is cut, and says so */
  KERNEL_FILE_BYTES = 1024,
  KERNEL_LINES_BYTES = 32768,
  KERNEL_HEAD_BYTES = 64, /* of the bytes object with the instructions (3.10 and before) */
  KERNEL_HEADER_BYTES = 128,
  KERNEL_MOST_STATES = 4096, /* thread states that are searched for one's own */
  /* Of a native half. A C stack is copied up to so many bytes from its red zone on, as in the other ways; and
   * up to fewer where nobody knows how far it goes: one of a signal's or a coroutine's. */
  KERNEL_STACK_BYTES = 128 << 10,
  KERNEL_LOST_STACK_BYTES = 32 << 10,
  KERNEL_KERNEL_FRAMES = 64,
  KERNEL_MAX_STARTS = 512,     /* a power of two; evaluations further out have no place of their own */
  KERNEL_ARGUMENT_BYTES = 256, /* of a command line */
  KERNEL_PATH_BYTES = 1024,    /* of a file's path, a power of two; what is further out is cut off */
  KERNEL_PATH_PARTS = 64,
};

/* Where in a process its Python keeps what is read: the map `processes`, by process. Offsets as the layout
 * table has them (python/layout.h); KERNEL_ABSENT: there is no such field. */
#define KERNEL_ABSENT 0xffffffffu

enum kernel_anchor { KERNEL_ANCHOR_FRAME, KERNEL_ANCHOR_CFRAME };
enum kernel_base { KERNEL_BASE_NONE, KERNEL_BASE_ENTRY_OWNER, KERNEL_BASE_IS_ENTRY };
enum kernel_epoch { KERNEL_EPOCH_NONE, KERNEL_EPOCH_GLOBAL, KERNEL_EPOCH_VERSION, KERNEL_EPOCH_GENERATION };

/* How a thread finds its own thread state: in the word of autoTSSkey, by a pointer to an array that has it
 * (musl), or in the interpreters' lists, by its thread_id, which is the thread pointer. */
enum kernel_state_how { KERNEL_STATE_WORD, KERNEL_STATE_INDIRECT, KERNEL_STATE_LISTED };

struct kernel_process {
  __u32 id; /* another one each time that all that was sent is to be sent anew */
  /* 1: no Python is known in it (yet). Its threads' times are kept, nothing of them is walked or told but
   * their ends, and what it starts. */
  __u32 plain;
  __u32 continues; /* id that it had when it was plain: the sums of its threads go on */
  __u32 reserved;
  __u32 state_how;
  __u32 state_offset; /* from the thread pointer: the word, or the pointer */
  __u32 state_index;  /* into that array, in bytes */
  __u64 interpreters; /* address of the word that holds the first of them */
  __u64 global_epoch; /* address */
  __u64 gil;          /* address; 0: by way of the interpreter, or none */
  __u32 anchor, frame_base, epoch;
  __u32 thread_interp, thread_frame, thread_id, thread_size, thread_prev, thread_next;
  __u32 cframe_current, cframe_previous;
  __u32 thread_cframe; /* where evaluations are told by CFrames alone (3.10, 3.11) */
  __u32 interp_gil, interp_collecting, interp_epoch, interp_next, interp_threads;
  __u32 gil_holder, gil_locked, gil_size;
  __u32 frame_bytes, frame_code, frame_previous, frame_instr, frame_instr_bytes;
  __u32 frame_owner, frame_is_entry, owner_entry, code_mask;
  __u32 frame_tlbc, code_tlbc, tlbc_entries, code_adaptive;
  __u32 code_bytes;              /* of the struct */
  __u32 proof_from, proof_bytes; /* the range of the struct that proves it */
  __u32 proof_contents;          /* 1: with the strings' contents (before 3.12) */
  __u32 code_version;            /* for KERNEL_EPOCH_*VERSION and GLOBAL */
  __u32 code_part[5];            /* name, qualname, filename, linetable, code */
  __u32 text_head, text_length, text_state, text_shift, text_ascii, text_compact;
  __u32 bytes_size, bytes_data;
  /* What its threads' walks at switches may take, ns: so many thousandths of the time that passes, up to
   * KERNEL_MOST_CREDIT at once. The rest of its switches are counted, and not walked. */
  __u32 walk_share;
  __u32 follow; /* 1: what it forks is looked at, too, from its birth on */
  __s64 credit;
  __u64 credit_at;
  /* What its samples by the clock and its walks at switches may take together, in the same way: without
   * credit the clock takes no sample. */
  __u32 clock_share;
  __u32 longest_walk; /* ns. Then a walk is cut at the root */
  __s64 clock_credit;
  __u64 clock_credit_at;
};
#define KERNEL_MOST_CREDIT 2000000
/* ns. The first birth after so long without one wakes the reader of the ring; so long it looks often. */
#define KERNEL_NEWBORN_FOR 1000000000

/* A thread of a recorded process: the map `threads`, by thread. Times are CLOCK_MONOTONIC, and sums. */
enum kernel_thread_state { KERNEL_UNKNOWN, KERNEL_RUNNING, KERNEL_BLOCKED, KERNEL_QUEUED };

struct kernel_stack {
  __u64 hash;  /* where it was unreadable: the address */
  __u64 state; /* PyThreadState; 0: none, and no frames */
  __u64 interpreter;
  __u64 python_id;
  __u32 count;    /* frames */
  __u32 left_out; /* between the first KERNEL_MAX_FRAMES / 2 of them and the others */
  __u32 reserved;
  __u16 end;   /* enum kernel_end */
  __u16 flags; /* KERNEL_HOLDS_GIL... */
};

/* What ended a wait, as far as it is proved (waker.bpf.h). */
enum kernel_ended {
  KERNEL_ENDED_UNKNOWN,
  KERNEL_ENDED_BY_THREAD,
  KERNEL_ENDED_BY_TIMEOUT, /* of its own system call */
};
struct kernel_waker {
  __u32 thread; /* the waker; 0: there is none, or it is not known */
  __u32 process;
  __u64 stack; /* its hash, of a thread of the same process; 0: not walked */
  char name[16];
  __u32 ended; /* enum kernel_ended */
  __u32 reserved;
};

/* Where a CPU keeps what the program reads, in bytes from its run queue (`runqueues`); the kernel's types say
 * it, the loader asks them. 0: not known. */
struct kernel_host {
  __s64 preempt_count;
  __s64 timers; /* hrtimer_bases */
};

/* Its thread state, where that is searched for. */
struct kernel_found {
  __u64 state;  /* as last found; 0: none */
  __u64 newest; /* thread state when there was none */
  __u64 again;  /* not searched for before, unless there is a newer one */
  __u64 pause;
};

struct kernel_thread {
  __u64 since;      /* when it came to what it does */
  __u32 generation; /* kernel_known.generation when its process was looked up last */
  __u32 plain;      /* as kernel_process.plain */
  __u64 ran, blocked, queued;
  __u64 off_since; /* off the CPU, with this stack */
  __u64 told;      /* of blocked + queued, what is in a record, and by chance some more */
  __u64 stolen;    /* of its CPU: not_for_tasks() when it was last looked at */
  __u64 owed;      /* of that, what is still to be taken from what it ran */
  struct kernel_stack off;
  __u32 id; /* of its process */
  __u16 state;
  __s16 system_call;
  __u64 born;   /* 1: since its birth, so that the scheduler's own sum is that of what it ran */
  __u64 walked; /* 1: `off` is of this time off the CPU; 0: of an earlier one */
  /* Until then its shares of walks are used up, but for some at once: the first, and that of a thread which
   * hardly waits. */
  __u64 walks_until, rare_until;
  __u64 met;   /* 1: a sample of it was sent */
  __u64 futex; /* that it waits for; 0: none */
  __u64 gil;   /* the struct of its interpreter's GIL when it was walked last; 0: not known */
  __u64 gil_size;
  __u64 native;     /* kernel_sample.native of `off` */
  __u64 native_due; /* when the next native half at a switch is due */
  /* Of short waits that were walked, the one that stands for all: by chance, as likely as it was long. */
  struct kernel_stack stand_in;
  __u64 stand_in_native;
  __s16 stand_in_call;
  __u8 stand_in_waits, waits; /* 1: it waits, this time too; 0: was to make place for others */
  __u32 stand_in_of;       /* ns of those that it was drawn among, if it is of those that are not told yet */
  __u32 longest;           /* ns, of those that were walked lately; 0: none was */
  __s32 mostly_walked;     /* of those that are not told yet, how many more were walked than not */
  __u32 was_mostly_walked; /* 1: of those that were told last more than half were walked */
  __u16 skips;             /* so many switches are not walked before the next one is */
  __u16 mean_skips;        /* what `skips` is on average, in sixteenths */
  __u32 woken_by; /* thread + 1 that ran where the waits were ended that are not told yet; ~0: several */
  struct kernel_waker waker; /* of this time off the CPU */
  __u64 woken;               /* the struct task_struct, while it is judged who wakes it */
  struct kernel_found found;
  __u64 file;      /* that it waits for, a struct file; 0: none, or not known */
  __s32 waits_for; /* the number of its descriptor, or of a child */
  __u16 waits_for_what;
  __u16 waits_for_others; /* descriptors that it waits for beside */
};
enum kernel_waits_for {
  KERNEL_WAITS_FOR_UNKNOWN,
  KERNEL_WAITS_FOR_FILE,
  KERNEL_WAITS_FOR_CHILD,
  KERNEL_WAITS_FOR_TIME
};

/* Of most of what a host switches between, that it is none of the recorded processes is known without a
 * search. Mapped by the loader, which keeps it with the map `processes`. */
#define KERNEL_KNOWN 32768
struct kernel_known {
  /* ns: what a wait has to last to be told by itself, and one for the GIL or a CPU; of shorter ones their sum
   * is told. */
  __u64 shortest_wait, shortest_gil_wait;
  __u64 clock_offset;            /* ns, that the recorder's CLOCK_MONOTONIC is ahead of the host's */
  __u32 generation;              /* another one each time that a process gets another id */
  __u32 processes[KERNEL_KNOWN]; /* by process % KERNEL_KNOWN: how many are recorded */
};

/* The ring. */
enum kernel_record {
  KERNEL_SAMPLE = 1,
  KERNEL_CODE,
  KERNEL_STACK,
  KERNEL_EXIT,
  KERNEL_NATIVE,
  KERNEL_EXEC,
  KERNEL_BIRTH,
  KERNEL_WAIT_TARGET
};
enum kernel_end {
  KERNEL_END_BASE,
  KERNEL_END_DETACHED, /* no base at the end of the chain */
  KERNEL_END_FULL,
  KERNEL_END_EMPTY,    /* runs no Python */
  KERNEL_END_NO_STATE, /* has no thread state */
  KERNEL_END_UNREADABLE,
  KERNEL_END_BROKEN,
};
enum {
  KERNEL_HOLDS_GIL = 1,
  KERNEL_WAITS_GIL = 2,
  KERNEL_COLLECTING = 4,
  KERNEL_NOT_READ = 8,    /* a frame's code object was not sent: no room */
  KERNEL_FRAMES = 16,     /* they follow */
  KERNEL_HELD_GIL = 64,   /* it was the last that took it, be it let go of since */
  KERNEL_NOT_WALKED = 32, /* a wait whose stack is not known: there were too many switches to walk at each */
  KERNEL_STANDS_IN = 128, /* with the stack and the system call of another than the last of them */
  KERNEL_TOGETHER = 256,  /* several short waits; off_since is the last one's */
  KERNEL_GIL_UNKNOWN = 512, /* of a wait that was not walked: whether it was for the GIL is not known */
};

struct kernel_head {
  __u32 type;
  __u32 id; /* of the process */
};

/* A thread found on its CPU, or one that came back to it: then off_since and the stack it left it with.
 * KERNEL_STACK: only the frames, of a stack not seen before. Followed by kernel_stack.count frames, leaf
 * first, if KERNEL_FRAMES: serial of the code object << 32 | what tells the instruction. */
struct kernel_sample {
  struct kernel_head head;
  __u32 thread;
  __s16 cpu;
  __s16 system_call;
  __u64 time;
  __u64 ran, blocked, queued; /* sums, until `time` */
  __u64 off_since;            /* 0: found running */
  /* With native halves, kernel_native.time of its own; 0: it has none. Without them, the instruction of its
   * own code at which the clock found it; 0: the clock found it in the kernel, or did not find it. */
  __u64 native;
  struct kernel_stack stack;
  struct kernel_waker waker;
};

/* The native half of a stack, sent before the sample that has it: the registers with which the thread was in
 * its own code last, be it in the kernel by now. Followed by `kernel` addresses of the kernel, innermost
 * first, `starts` evaluations of the interpreter loop, and `stack` bytes. */
struct kernel_native {
  struct kernel_head head;
  __u32 thread;
  __u16 kernel;
  __u16 starts; /* leaf first: address << 16 | how many frames are further in (3.11: its innermost frame's) */
  __u32 stack;
  __u32 away; /* 1: of a thread that leaves its CPU */
  __u64 time;
  __u64 keep; /* the time of an earlier one that is named on; 0: none is */
  __u64 ip, sp, bp, bx;
  __u64 stack_start;
  __u64 cframe; /* the innermost; 0: there is none */
};

/* What a wait was for that is told by itself, sent before the sample that tells of it. Followed by `size`
 * bytes: of a file the parts of its path, innermost first, each with a zero behind it; of a Unix socket its
 * address (sun_path). */
struct kernel_wait_target {
  struct kernel_head head;
  __u32 thread;
  __u32 flags; /* KERNEL_WAIT_TARGET_NONE... */
  __u64 since; /* kernel_sample.off_since */
  __u64 inode;
  __u64 peer_inode; /* of a Unix socket's other end; 0: not known */
  __u32 magic;      /* of its file system (linux/magic.h) */
  __u32 process; /* Unix socket: who had its other end when it was connected; pidfd: the process; 0: not known
                  */
  __u16 mode;    /* i_mode */
  __u16 access;  /* f_mode: 1 to read, 2 to write */
  __u16 size;
  __u16 family; /* of a socket */
  __u16 state;  /* TCP_ESTABLISHED... (net/tcp_states.h), of any protocol */
  __u16 port, peer_port;
  __u16 others;               /* descriptors that it waited for beside */
  __u8 address[16], peer[16]; /* IPv4: the first four bytes */
};
enum {
  KERNEL_WAIT_TARGET_NONE =
      1, /* no file: it was to end by itself, or an epoll instance of which none was ready */
  KERNEL_WAIT_TARGET_CUT = 2,     /* the path is longer */
  KERNEL_WAIT_TARGET_REMOVED = 4, /* from its folder */
  KERNEL_WAIT_TARGET_BY_PEER = 8, /* the address is that of the other end */
};

struct kernel_part {
  __u64 address; /* 0: NULL, or not read */
  __u32 at;      /* in the bytes */
  __u32 size;
};

/* A code object that was not known, as it lay in memory in that instant: the struct's first code_bytes bytes,
 * and the parts of code_part. */
struct kernel_code {
  struct kernel_head head;
  __u64 address;
  __u32 serial;
  __u32 size; /* of the bytes that follow */
  struct kernel_part part[5];
};

/* A thread has ended (KERNEL_EXIT), or called execve, which ended its process's program (KERNEL_EXEC). */
struct kernel_exit {
  struct kernel_head head;
  __u32 thread;
  __u32 first; /* 1: it was its process's first */
  __u64 time;
  __u64 ran, blocked, queued; /* sums, until `time` */
};

/* KERNEL_EXEC: the process is plain from here on. The sums of this thread go on. */
struct kernel_exec {
  struct kernel_exit ended; /* whose head.id is that of before */
  __u32 id;                 /* from here on */
  __u32 arguments;          /* bytes of `text`: argv, each ended by a zero */
  __u64 inode;              /* of the executable */
  __u32 device;             /* as the kernel has it: major << 20 | minor */
  __u32 reserved;
  char text[KERNEL_ARGUMENT_BYTES];
};

/* A recorded process, head.id, has forked. The child is looked at from here on. */
struct kernel_birth {
  struct kernel_head head;
  __u32 id; /* of the child */
  __u32 process, parent;
  __u32 plain; /* 1: it is: its parent is, or it has its parent's memory (vfork) */
  __u64 time;
  char name[16];
};
/* Ids of processes from here on are given by the kernel, those below by us. */
#define KERNEL_FIRST_BORN 0x80000000u

/* The map `counts`, one value a CPU. */
enum kernel_count {
  KERNEL_COUNT_HITS, /* of the clock */
  KERNEL_COUNT_WALKS,
  KERNEL_COUNT_SKIPPED,    /* of the hits, those without credit */
  KERNEL_COUNT_TIME,       /* ns in our programs, for recorded processes */
  KERNEL_COUNT_CLOCK_TIME, /* of it, those of the clock */
  KERNEL_COUNT_WAIT_TIME,  /* of it, those for the records of waits and for who ended them */
  KERNEL_COUNT_LOST,       /* records that found no room */
  KERNEL_COUNT_FULL,       /* threads that found no room in the map */
  KERNEL_COUNTS,
};

#endif
