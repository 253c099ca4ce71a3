/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The interface between the program in the kernel and the recorder: the values of the maps, and the records
 * of the ring. C, because both include it. The reader checks every length in a record (kernel_records.h). */
#ifndef PHLOX_SAMPLER_KERNEL_WIRE_H
#define PHLOX_SAMPLER_KERNEL_WIRE_H

#include <linux/types.h>

enum {
  KERNEL_MAX_FRAMES = 2048,  /* of one stack, a power of two; of a deeper one, half from each end */
  KERNEL_MOST_STEPS = 65536, /* of one walk, entry frames included; then it is cut at the root */
  KERNEL_PROOF_WORDS = 12,   /* of a code object, compared at each sample */
  KERNEL_STRUCT_BYTES = 256,
  KERNEL_NAME_BYTES = 512, /* a string with its head; a longer one is cut and marked */
  KERNEL_FILE_BYTES = 1024,
  KERNEL_LINES_BYTES = 32768,
  KERNEL_HEAD_BYTES = 64, /* of the bytes object with the instructions (3.10 and before) */
  KERNEL_HEADER_BYTES = 128,
  KERNEL_MOST_STATES = 4096, /* thread states among which a thread's own is searched for */
  /* For native halves. This much of a C stack is copied, from its red zone on, as in the other modes; less
   * if its end is not known, as for the stack of a signal handler or a coroutine. */
  KERNEL_STACK_BYTES = 128 << 10,
  KERNEL_LOST_STACK_BYTES = 32 << 10,
  KERNEL_KERNEL_FRAMES = 64,
  KERNEL_MAX_STARTS = 512,     /* a power of two; evaluations further out have no place of their own */
  KERNEL_ARGUMENT_BYTES = 256, /* of a command line */
  KERNEL_PATH_BYTES = 1024,    /* of a file's path, a power of two; outer parts of a longer one are cut */
  KERNEL_PATH_PARTS = 64,
};

/* Offsets of the layout table (python/layout.h); KERNEL_ABSENT: there is no such field. */
#define KERNEL_ABSENT 0xffffffffu

enum kernel_anchor { KERNEL_ANCHOR_FRAME, KERNEL_ANCHOR_CFRAME };
enum kernel_base { KERNEL_BASE_NONE, KERNEL_BASE_ENTRY_OWNER, KERNEL_BASE_IS_ENTRY };
enum kernel_epoch { KERNEL_EPOCH_NONE, KERNEL_EPOCH_GLOBAL, KERNEL_EPOCH_VERSION, KERNEL_EPOCH_GENERATION };

/* How a thread finds its own thread state: in the word of autoTSSkey, by a pointer to an array that has it
 * (musl), or in the interpreters' lists, by its thread_id, which is what pthread_self() gives. */
enum kernel_state_how { KERNEL_STATE_WORD, KERNEL_STATE_INDIRECT, KERNEL_STATE_LISTED };

/* Where a process's Python keeps what is read. */
struct kernel_python {
  __u64 interpreters; /* address of the word that holds the first of them */
  __u64 global_epoch; /* address */
  /* What pthread_self() gives is this much below the thread pointer: the size of the C library's struct
   * pthread on aarch64, 0 on x86-64. */
  __u32 thread_block;
  __u32 anchor, epoch; /* enum kernel_anchor, kernel_epoch */
  struct {
    __u32 how;
    __u32 offset; /* from pthread_self(): the word, or the pointer */
    __u32 index;  /* into that array, in bytes */
  } state;
  struct {
    __u32 interp, frame, id, size, prev, next;
    __u32 cframe; /* if only CFrames show where evaluations begin (3.10, 3.11) */
  } thread;
  struct {
    __u32 current, previous;
  } cframe;
  struct {
    __u32 gil, collecting, epoch, next, threads;
  } interp;
  struct {
    __u64 at; /* address; 0: found through the interpreter, or none */
    __u32 holder, locked, size;
  } gil;
  struct {
    __u32 base;  /* enum kernel_base */
    __u32 bytes; /* that are read */
    __u32 code, code_mask, previous, instr, instr_bytes, owner, owner_entry, is_entry, tlbc;
  } frame;
  struct {
    __u32 part[5];                 /* name, qualname, filename, linetable, code */
    __u32 bytes;                   /* of the struct */
    __u32 proof_from, proof_bytes; /* the range of the struct that proves it */
    __u32 proof_contents;          /* 1: with the strings' contents (before 3.12) */
    __u32 version;                 /* for KERNEL_EPOCH_*VERSION and GLOBAL */
    __u32 adaptive, tlbc, tlbc_entries;
  } code;
  struct {
    __u32 head, length, state, shift, ascii, compact;
  } text;
  struct {
    __u32 size, data;
  } bytes;
};

/* What walks may cost (credit.bpf.h). */
struct kernel_credit {
  __s64 left; /* ns, at most KERNEL_MOST_CREDIT */
  __u64 at;
  __u32 share; /* thousandths of the elapsed time */
};
#define KERNEL_MOST_CREDIT 2000000

/* A recorded process: the map `processes`. */
struct kernel_process {
  __u32 id; /* changes whenever everything must be sent again */
  /* 1: no Python is known in it (yet). Its threads' times are kept, but no stack is walked. Only the ends of
   * its threads, and what it starts, are reported. */
  __u32 plain;
  __u32 continues;            /* its id when it was plain: the sums of its threads continue */
  __u32 follow;               /* 1: its forked children are recorded too, from their birth on */
  __u32 longest_walk;         /* ns; then a walk is cut at the root */
  struct kernel_credit walks; /* at switches */
  struct kernel_credit clock; /* for clock samples, and walks at switches too */
  __u64 signals_until;        /* ns; until then it has used up its share of signals (signal.bpf.h) */
  struct kernel_python python;
};
/* ns. The first birth after this time without one wakes the reader of the ring, which then polls often for
 * this time. */
#define KERNEL_NEWBORN_FOR 1000000000

struct kernel_stack {
  __u64 hash;  /* if it was unreadable: the address */
  __u64 state; /* PyThreadState; 0: none, and no frames */
  __u64 interpreter;
  __u64 python_id;
  __u32 count;    /* frames */
  __u32 left_out; /* between the first KERNEL_MAX_FRAMES / 2 of them and the others */
  __u32 trace;    /* kernel_trace.number of this moment; 0: none */
  __u16 end;      /* enum kernel_end */
  __u16 flags;    /* KERNEL_HOLDS_GIL... */
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

/* Where a CPU keeps what the program reads, in bytes from its run queue (`runqueues`). The loader finds it in
 * the kernel's types. 0: not known. */
struct kernel_host {
  __s64 preempt_count; /* aarch64 has it in each thread */
  __s64 timers;        /* hrtimer_bases */
  __u64 stack_size;    /* of a thread, in the kernel */
};

/* The recorder's PID namespace, by its inode in /proc/self/ns/pid; 0: the host's initial one. */
struct kernel_namespace {
  __u32 inode;
};

/* Where the threads of a process publish the span of a trace that they work for: the map `slots`, by process.
 * As process::ThreadVariable (process/thread_context.h). */
struct kernel_slot {
  __u32 id; /* kernel_process.id */
  __u32 module;
  __s64 offset;
  __s32 vector, count;
  __u32 entry, reserved;
};

/* The ids of a trace and its span, as bytes in their order. */
struct kernel_trace_ids {
  __u64 trace[2], span;
};

/* A thread's own thread state, if it must be searched for. */
struct kernel_found {
  __u64 state;  /* as last found; 0: none */
  __u64 newest; /* thread state when there was none */
  __u64 again;  /* no search before this time, unless there is a newer one */
  __u64 pause;
};

struct kernel_sums {
  __u64 ran, blocked, queued;
  __u64 reported; /* the part of blocked + queued that is in a record, and a random amount more */
  __u64 stolen;   /* of its CPU: not_for_tasks() when it was last read */
  __u64 owed;     /* the part of it that is still to be subtracted from what it ran */
};

/* The last time off the CPU, which may not be over. */
struct kernel_off {
  __u64 since; /* 0: none */
  struct kernel_stack stack;
  struct kernel_waker waker;
  __u64 native;           /* as kernel_sample.native */
  __u64 futex;            /* that it waits for; 0: none */
  __u64 woken;            /* the struct task_struct, while its waker is determined */
  __u64 file;             /* the struct file that it waits for; 0: none, or not known */
  __s32 waits_for;        /* the number of its descriptor, or of a child */
  __u16 waits_for_what;   /* enum kernel_waits_for */
  __u16 waits_for_others; /* the number of further descriptors that it waits for */
  __s16 system_call;
  __u8 waits;  /* 0: it was preempted */
  __u8 walked; /* 1: `stack` is of this time; 0: of an earlier one */
};

/* Short waits that will be reported together, with the stack of one of them (may_stand_in in switch.bpf.h).
 */
struct kernel_unreported {
  struct kernel_stack stack;
  __u64 native;
  __s16 system_call;
  __u8 waits;
  __u8 was_mostly_walked; /* 1: more than half of those reported last were walked */
  __u32 drawn_from;       /* ns of those it was drawn from; 0: it is of an earlier report */
  __u32 drawn;            /* ns: how long that wait itself was; 0: none was walked */
  __s32 mostly_walked;    /* how many more were walked than not */
  __u32 woken_by;         /* thread + 1 that ran where they ended; ~0: several */
};

/* When a switch is walked, and its C stack copied (credit.bpf.h). */
struct kernel_walks {
  __u64 until, rare_until; /* its shares are used up until then: its own, and that of one that rarely waits */
  __u64 native_due;
  __u16 skips, mean_skips; /* switches without a walk before the next; their mean, in sixteenths */
};

/* A thread of a recorded process: the map `threads`, by thread. Times are in CLOCK_MONOTONIC, or sums. */
enum kernel_thread_state { KERNEL_UNKNOWN, KERNEL_RUNNING, KERNEL_BLOCKED, KERNEL_QUEUED };
struct kernel_thread {
  __u32 id;         /* of its process */
  __u32 plain;      /* as kernel_process.plain */
  __u32 generation; /* kernel_known.generation when its process was looked up last */
  __u32 state;
  __u64 since; /* when its state began */
  __u32 born;  /* 1: known since its birth, so the scheduler's own sum is what it ran */
  __u32 met;   /* 1: a sample of it was sent */
  struct kernel_sums sums;
  struct kernel_off off;
  struct kernel_unreported unreported;
  struct kernel_walks walks;
  struct {
    __u64 at, size; /* the struct of its interpreter's GIL when it was walked last; 0: not known */
  } gil;
  struct kernel_found found;
  struct {
    struct kernel_trace_ids ids; /* as last sent */
    __u32 number;                /* kernel_trace.number of that */
    __u32 now;                   /* the number, if it was read when it left last; 0: none */
  } trace;
};
enum kernel_waits_for {
  KERNEL_WAITS_FOR_UNKNOWN,
  KERNEL_WAITS_FOR_FILE,
  KERNEL_WAITS_FOR_CHILD,
  KERNEL_WAITS_FOR_TIME
};

/* Shows without a search, for most threads of a host, that their process is not recorded. Mapped by the
 * loader, which keeps it consistent with the map `processes`. */
#define KERNEL_KNOWN 32768
struct kernel_known {
  /* ns: how long a wait must be to have its own record; the second is for the GIL or a CPU. Shorter waits are
   * reported as a sum. */
  __u64 shortest_wait, shortest_gil_wait;
  __u64 clock_offset;            /* ns by which the recorder's CLOCK_MONOTONIC is ahead of the host's */
  __u32 generation;              /* changes whenever a process gets another id */
  __u32 slots;                   /* how many are in the map `slots` */
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
  KERNEL_WAIT_TARGET,
  KERNEL_SIGNAL,
  KERNEL_TRACE
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
  KERNEL_NOT_READ = 8,      /* a frame's code object was not sent: no room */
  KERNEL_FRAMES = 16,       /* they follow */
  KERNEL_HELD_GIL = 64,     /* it was the last to take it, and may have released it since */
  KERNEL_NOT_WALKED = 32,   /* a wait whose stack is not known: too many switches to walk at each */
  KERNEL_STANDS_IN = 128,   /* with the stack and the system call of another wait than the last one */
  KERNEL_TOGETHER = 256,    /* several short waits; off_since is the last one's */
  KERNEL_GIL_UNKNOWN = 512, /* a wait that was not walked, perhaps for the GIL */
};

struct kernel_head {
  __u32 type;
  __u32 id; /* of the process */
};

/* A thread on its CPU, or one that returned to it, with off_since and the stack with which it left.
 * KERNEL_STACK: only the frames of a new stack. With KERNEL_FRAMES, kernel_stack.count frames follow, leaf
 * first: serial of the code object << 32 | value that identifies the instruction. */
struct kernel_sample {
  struct kernel_head head;
  __u32 thread;
  __s16 cpu;
  __s16 system_call;
  __u64 time;
  __u64 ran, blocked, queued; /* sums, until `time` */
  __u64 off_since;            /* 0: found running */
  /* With native halves, the kernel_native.time of its native half; 0: none. Otherwise the instruction of its
   * own code at the clock sample; 0: it was in the kernel, or this is no clock sample. */
  __u64 native;
  struct kernel_stack stack;
  struct kernel_waker waker;
};

/* The native half of a stack, sent before its sample: the registers that the thread last had in its own code,
 * even if it is in the kernel now. Followed by `kernel` addresses of the kernel, innermost first, `starts`
 * evaluations of the interpreter loop, and `stack` bytes. */
struct kernel_native {
  struct kernel_head head;
  __u32 thread;
  __u16 kernel;
  __u16 starts; /* leaf first: address << 16 | how many frames are further in (3.11: its innermost frame's) */
  __u32 stack;
  __u32 away; /* 1: of a thread that leaves its CPU */
  __u64 time;
  __u64 keep; /* the time of an earlier one that is still referred to; 0: none */
  __u64 pc, sp, fp, lr, bx;
  __u64 stack_start;
  __u64 cframe; /* the innermost; 0: there is none */
};

/* The wait target of a wait with its own record, sent before that record. Followed by `size` bytes: for a
 * file, the parts of its path, innermost first, each followed by a zero; for a Unix socket, its address
 * (sun_path). */
struct kernel_wait_target {
  struct kernel_head head;
  __u32 thread;
  __u32 flags; /* KERNEL_WAIT_TARGET_NONE... */
  __u64 since; /* kernel_sample.off_since */
  __u64 inode;
  __u64 peer_inode; /* of a Unix socket's other end; 0: not known */
  __u32 magic;      /* of its file system (linux/magic.h) */
  __u32 process;    /* Unix socket: owner of the other end when connected; pidfd: the process; 0: not known */
  __u16 mode;       /* i_mode */
  __u16 access;     /* f_mode: 1 to read, 2 to write */
  __u16 size;
  __u16 family; /* of a socket */
  __u16 state;  /* TCP_ESTABLISHED... (net/tcp_states.h), of any protocol */
  __u16 port, peer_port;
  __u16 others;               /* the number of further descriptors that it waited for */
  __u8 address[16], peer[16]; /* IPv4: the first four bytes */
};
enum {
  KERNEL_WAIT_TARGET_NONE = 1,    /* no file: a wait for time, or an epoll instance without a ready file */
  KERNEL_WAIT_TARGET_CUT = 2,     /* the path is longer */
  KERNEL_WAIT_TARGET_REMOVED = 4, /* removed from its folder */
  KERNEL_WAIT_TARGET_BY_PEER = 8, /* the address is the other end's */
};

/* The span that a thread works for at its next sample, if that is not the same as before. */
struct kernel_trace {
  struct kernel_head head;
  __u32 thread;
  __u32 number; /* counts up for each thread; not 0 */
  struct kernel_trace_ids ids;
};

struct kernel_part {
  __u64 address; /* 0: NULL, or not read */
  __u32 at;      /* in the bytes */
  __u32 size;
};

/* A code object that was not known, as it was in memory at that moment: the first code_bytes bytes of its
 * struct, and the parts of code_part. */
struct kernel_code {
  struct kernel_head head;
  __u64 address;
  __u32 serial;
  __u32 size; /* of the bytes that follow */
  struct kernel_part part[5];
};

/* A thread has ended (KERNEL_EXIT), or called execve, which ended the program of its process (KERNEL_EXEC).
 */
struct kernel_exit {
  struct kernel_head head;
  __u32 thread;
  __u32 first; /* 1: it was the first of its process */
  __u64 time;
  __u64 ran, blocked, queued; /* sums, until `time` */
};

/* KERNEL_EXEC: the process is plain from now on. The sums of this thread continue. */
struct kernel_exec {
  struct kernel_exit ended; /* its head.id is the earlier one */
  __u32 id;                 /* from now on */
  __u32 arguments;          /* bytes of `text`: argv, each argument followed by a zero */
  __u64 inode;              /* of the executable */
  __u32 device;             /* the kernel's form: major << 20 | minor */
  __u32 reserved;
  char text[KERNEL_ARGUMENT_BYTES];
};

/* A recorded process, head.id, has forked. The child is recorded from now on. */
struct kernel_birth {
  struct kernel_head head;
  __u32 id; /* of the child */
  __u32 process, parent;
  __u32 plain; /* 1: its parent is plain, or it shares its parent's memory (vfork) */
  __u64 time;
  char name[16];
};
/* A signal that ends a program by default. There is one record for the sender's process, if it is recorded,
 * one for the receiver's, at the same time, and one for each thread that the kernel delivers it to. Before a
 * record that names a thread there is a sample of that thread, if it runs Python. */
struct kernel_signal {
  struct kernel_head head;
  __u64 time;
  __u32 thread; /* sent: by; delivered: to; received: 0 */
  __u32 other;  /* sent: the receiver's process; received: the sender's; 0: the kernel, or not visible */
  __u16 signal;
  __u8 what;     /* kernel_signal_is */
  __u8 flags;    /* KERNEL_SIGNAL_... */
  char name[16]; /* of the other process */
};
enum kernel_signal_is { KERNEL_SIGNAL_SENT = 1, KERNEL_SIGNAL_RECEIVED, KERNEL_SIGNAL_DELIVERED };
enum {
  KERNEL_SIGNAL_BY_KERNEL = 1, /* received: no process sent it */
  KERNEL_SIGNAL_OWN = 2,       /* received: an instruction of the thread itself caused it */
  KERNEL_SIGNAL_HANDLED = 4,   /* delivered: a function of the program handles it */
  KERNEL_SIGNAL_NO_MEMORY = 8, /* delivered: the OOM killer chose the process */
  KERNEL_SIGNAL_ENDS = 16,     /* received: the kernel ends the process */
  KERNEL_SIGNAL_UNSEEN = 32,   /* sent, delivered: without a sample of the thread */
};
/* The kernel assigns process ids from this one on, phlox the lower ones. */
#define KERNEL_FIRST_BORN 0x80000000u

/* The map `counts`, one value a CPU. */
enum kernel_count {
  KERNEL_COUNT_HITS, /* of the clock */
  KERNEL_COUNT_WALKS,
  KERNEL_COUNT_SKIPPED,    /* hits without credit */
  KERNEL_COUNT_TIME,       /* ns in our programs, for recorded processes */
  KERNEL_COUNT_CLOCK_TIME, /* the part of the clock */
  KERNEL_COUNT_WAIT_TIME,  /* the part for records of waits and wakers */
  KERNEL_COUNT_LOST,       /* records for which there was no room */
  KERNEL_COUNT_FULL,       /* threads for which the map had no room */
  KERNEL_COUNT_NO_MEMORY,  /* threads for which the kernel had no memory at that moment */
  KERNEL_COUNTS,
};

#endif
