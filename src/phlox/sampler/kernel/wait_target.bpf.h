// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// What a thread waits for, if its system call says so: the file of a descriptor, or a child. The struct file
// is noted when the thread leaves its CPU. The file is described when the wait is reported, while the thread
// is still in that call. The call holds the file; this is proved by the descriptor, which still names it.
#pragma once

#include "ids.bpf.h"

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct qstr {
  unsigned int len;
  const unsigned char* name;
};
struct hlist_bl_node {
  struct hlist_bl_node** pprev;
};
struct dentry {
  struct hlist_bl_node d_hash;
  struct dentry* d_parent;
  struct qstr d_name;
};
struct vfsmount {
  struct dentry* mnt_root;
};
struct mount {
  struct mount* mnt_parent;
  struct dentry* mnt_mountpoint;
  struct vfsmount mnt;
};
typedef struct {
  void* net;
} possible_net_t;
struct sock_common {
  possible_net_t skc_net;
  unsigned int skc_daddr, skc_rcv_saddr;
  unsigned short skc_dport, skc_num, skc_family;
  unsigned char skc_state;
  __u8 skc_v6_daddr[16], skc_v6_rcv_saddr[16];
};
struct sock {
  struct sock_common __sk_common;
  struct socket* sk_socket;
  struct pid* sk_peer_pid;
};
struct socket {
  struct file* file;
  struct sock* sk;
};
struct sockaddr_un {
  char sun_path[108];
};
struct unix_address {
  int len;
  struct sockaddr_un name[0];
};
struct unix_sock {
  struct unix_address* addr;
  struct sock* peer;
};
struct list_head {
  struct list_head *next, *prev;
};
struct epoll_filefd {
  struct file* file;
};
struct epitem {
  struct list_head rdllink;
  struct epoll_filefd ffd;
};
struct eventpoll {
  struct list_head rdllist;
};
#pragma clang attribute pop

#define FAMILY_UNIX 1
#define FAMILY_INET 2
#define FAMILY_INET6 10
#define MAGIC_SOCKETS 0x534F434B
#define MAGIC_PIDS 0x50494446
#define MOST_SELECTED 256

// Sent in one piece, up to its filled size. Parts of a path are read to any place in it.
struct wait_target {
  struct kernel_wait_target head;
  char name[KERNEL_PATH_BYTES + 256];
};
struct {
  __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
  __uint(max_entries, 1);
  __type(key, __u32);
  __type(value, struct wait_target);
} wait_targets SEC(".maps");

// ---- when a thread leaves its CPU

static const __u64 descriptor_calls[8] = {
    CALLS_DESCRIPTOR(0), CALLS_DESCRIPTOR(1), CALLS_DESCRIPTOR(2), CALLS_DESCRIPTOR(3),
    CALLS_DESCRIPTOR(4), CALLS_DESCRIPTOR(5), CALLS_DESCRIPTOR(6), CALLS_DESCRIPTOR(7),
};

// How many bits are set. Without a branch, which the verifier would follow.
static __always_inline __u32 bits_of(__u64 word) {
  word -= word >> 1 & 0x5555555555555555ull;
  word = (word & 0x3333333333333333ull) + (word >> 2 & 0x3333333333333333ull);
  word = word + (word >> 4) & 0x0F0F0F0F0F0F0F0Full;
  return word * 0x0101010101010101ull >> 56;
}

// For poll and ppoll, the first descriptor; for select and pselect6, the last one below their first argument.
// Takes the arguments of the call. Returns the number of further descriptors << 32 | the descriptor. -1: not
// known; -2: none.
__noinline __s64 descriptors_in_memory(__u64 sets, __u64 first, __u64 second, __u64 third, __u64 fourth) {
  if (!sets) {
    int descriptor = -1;
    if (second == 0) return -2;
    if (second > 65535 || bpf_probe_read_user(&descriptor, 4, (void*)first) || descriptor < 0) return -1;
    return (__s64)((second - 1) << 32 | (__u32)descriptor);
  }
  if (first == 0 || !(second | third | fourth)) return -2;
  if (first > MOST_SELECTED) return -1;
  __u64 word[MOST_SELECTED / 64], seen[MOST_SELECTED / 64] = {}, at[3] = {second, third, fourth};
  __u64 count = 0, last = 0;
  for (int i = 0; i < 3; ++i) {
    if (!at[i]) continue;
    __builtin_memset(word, 0, sizeof word);
    if (bpf_probe_read_user(word, at_most((first + 63) / 64 * 8, sizeof word), (void*)at[i])) return -1;
    for (int k = 0; k < MOST_SELECTED / 64; ++k) seen[k] |= word[k];
  }
  for (int k = 0; k < MOST_SELECTED / 64; ++k) {
    count += bits_of(seen[k]);
    last |= seen[k] & ((first - 1) / 64 == k ? 1ull << (first - 1) % 64 : 0);
  }
  return !count ? -2 : !last ? -1 : (__s64)((count - 1) << 32 | (first - 1));
}

static __always_inline void note_file(struct kernel_thread* t, struct task_struct* task, int descriptor) {
  struct files_struct* files = task->files;
  struct fdtable* table = files ? files->fdt : 0;
  t->off.waits_for = descriptor;
  t->off.waits_for_others = 0;
  t->off.waits_for_what = KERNEL_WAITS_FOR_FILE;
  if (table && (__u32)descriptor < table->max_fds)
    bpf_probe_read_kernel(&t->off.file, 8, table->fd + descriptor);
}

// For the current thread, in a call whose first argument is no descriptor. Verified once in each program.
__noinline int find_wait_target(struct kernel_thread* t, __u64 call) {
  if (!t) return 0;
  struct task_struct* task = bpf_get_current_task_btf();
  struct pt_regs___kernel* regs = (void*)bpf_task_pt_regs(task);
  __u64 first = REG_ARGUMENT_1(regs), second = REG_ARGUMENT_2(regs);
  __s64 number = -1;
  if (IS_POLL(call) || IS_SELECT(call)) {
    number =
        descriptors_in_memory(IS_SELECT(call), first, second, REG_ARGUMENT_3(regs), REG_ARGUMENT_4(regs));
    if (number == -2) t->off.waits_for_what = KERNEL_WAITS_FOR_TIME;
  } else if (call == CALL_wait4 || (call == CALL_waitid && first == 1)) {  // P_PID
    t->off.waits_for = call == CALL_wait4 ? (int)first : (int)second;
    if (t->off.waits_for > 0) t->off.waits_for_what = KERNEL_WAITS_FOR_CHILD;
  } else if (call == CALL_waitid && first == 3) {  // P_PIDFD
    number = (int)second;
  }
  if (number < 0) return 0;
  note_file(t, task, (int)number);
  t->off.waits_for_others = number >> 32;
  return 0;
}

// `call`: below zero: it is in none, or was preempted. `first`: its first argument. A function call is
// expensive here, so the system calls of most switches are handled before it.
static __always_inline void note_wait_target(struct kernel_thread* t, struct task_struct* task, long call,
                                             __u64 first) {
  t->off.file = 0;
  t->off.waits_for_what = KERNEL_WAITS_FOR_UNKNOWN;
  if (call < 0) return;
  if (descriptor_calls[call >> 6 & 7] >> (call & 63) & 1) {
    note_file(t, task, (int)first);
  } else if (!CALLS_FUTEX(call) && !CALLS_SLEEP(call)) {
    find_wait_target(t, call);
  }
}

// ---- when its wait is reported

struct path_walk {
  struct wait_target* to;
  struct dentry* dentry;
  struct mount* mount;
  __u32 used;
};

// The innermost remaining part; 1: there is none, or no room.
static long take_part(__u32 index, struct path_walk* walk) {
  struct dentry* dentry = walk->dentry;
  struct mount* mount = walk->mount;
  struct dentry* parent = BPF_CORE_READ(dentry, d_parent);
  if (bpf_core_field_exists(mount->mnt_parent) && dentry == BPF_CORE_READ(mount, mnt.mnt_root)) {
    struct mount* above = BPF_CORE_READ(mount, mnt_parent);
    if (!above || above == mount) return 1;
    walk->dentry = BPF_CORE_READ(mount, mnt_mountpoint);
    walk->mount = above;
    return 0;
  }
  // Without a folder: it has its own name.
  if (!parent || (parent == dentry && index > 0)) return 1;
  __u32 used = walk->used, length = at_most(BPF_CORE_READ(dentry, d_name.len), 255);
  if (used + length + 1 > KERNEL_PATH_BYTES) {
    walk->to->head.flags |= KERNEL_WAIT_TARGET_CUT;
    return 1;
  }
  char* at = walk->to->name + (used & (KERNEL_PATH_BYTES - 1));
  bpf_probe_read_kernel(at, length, BPF_CORE_READ(dentry, d_name.name));
  used += length;
  walk->to->name[used & (KERNEL_PATH_BYTES - 1)] = 0;
  walk->used = used + 1;
  walk->dentry = parent;
  return parent == dentry;
}

static __always_inline void read_path(struct wait_target* to, struct file* file) {
  struct dentry* dentry = BPF_CORE_READ(file, f_path.dentry);
  struct vfsmount* mounted = BPF_CORE_READ(file, f_path.mnt);
  struct path_walk walk = {.to = to, .dentry = dentry};
  walk.mount = (void*)mounted - bpf_core_field_offset(struct mount, mnt);
  if (!BPF_CORE_READ(dentry, d_hash.pprev)) to->head.flags |= KERNEL_WAIT_TARGET_REMOVED;
  bpf_loop(KERNEL_PATH_PARTS, take_part, &walk, 0);
  to->head.size = (__u16)walk.used;
}

static __always_inline int read_unix_address(struct wait_target* to, struct unix_sock* sock) {
  struct unix_address* address = BPF_CORE_READ(sock, addr);
  if (!address) return 0;
  __u32 length = at_most((__u32)BPF_CORE_READ(address, len), 110);
  if (length <= 2) return 0;
  to->head.size = (__u16)(length - 2);
  bpf_probe_read_kernel(to->name, at_most(length - 2, 108), &address->name[0].sun_path);
  return 1;
}

static __always_inline void read_unix_socket(struct wait_target* to, struct sock* sock) {
  struct unix_sock *one = (void*)sock, *other = 0;
  if (bpf_core_field_exists(sock->sk_peer_pid)) {
    struct pid* pid = BPF_CORE_READ(sock, sk_peer_pid);
    to->head.process = number_of(pid);
  }
  if (!bpf_core_field_exists(one->addr) || !bpf_core_field_exists(one->peer)) return;
  other = (void*)BPF_CORE_READ(one, peer);
  if (other) to->head.peer_inode = BPF_CORE_READ((struct sock*)other, sk_socket, file, f_inode, i_ino);
  if (!read_unix_address(to, one) && other && read_unix_address(to, other))
    to->head.flags |= KERNEL_WAIT_TARGET_BY_PEER;
}

static __always_inline void read_socket(struct wait_target* to, struct file* file) {
  struct kernel_wait_target* head = &to->head;
  struct socket* socket = BPF_CORE_READ(file, private_data);
  struct sock* sock = BPF_CORE_READ(socket, sk);
  if (!sock) return;
  head->family = BPF_CORE_READ(sock, __sk_common.skc_family);
  head->state = BPF_CORE_READ(sock, __sk_common.skc_state);
  if (head->family == FAMILY_UNIX) {
    read_unix_socket(to, sock);
    return;
  }
  if (head->family != FAMILY_INET && head->family != FAMILY_INET6) return;
  head->port = BPF_CORE_READ(sock, __sk_common.skc_num);
  head->peer_port = __builtin_bswap16(BPF_CORE_READ(sock, __sk_common.skc_dport));
  if (head->family == FAMILY_INET) {
    BPF_CORE_READ_INTO((__u32*)head->address, sock, __sk_common.skc_rcv_saddr);
    BPF_CORE_READ_INTO((__u32*)head->peer, sock, __sk_common.skc_daddr);
  } else if (bpf_core_field_exists(sock->__sk_common.skc_v6_daddr)) {
    BPF_CORE_READ_INTO(&head->address, sock, __sk_common.skc_v6_rcv_saddr);
    BPF_CORE_READ_INTO(&head->peer, sock, __sk_common.skc_v6_daddr);
  }
}

// The ready one ended the wait; the list is emptied after the thread has returned.
static __always_inline struct file* ready_of(struct kernel_wait_target* head, struct file* file) {
  struct eventpoll* poll = BPF_CORE_READ(file, private_data);
  struct epitem* item = 0;
  if (!bpf_core_field_exists(poll->rdllist) || !bpf_core_field_exists(item->rdllink)) return file;
  struct list_head* first = BPF_CORE_READ(poll, rdllist.next);
  if (first == &poll->rdllist) head->flags |= KERNEL_WAIT_TARGET_NONE;
  item = (void*)first - bpf_core_field_offset(struct epitem, rdllink);
  struct file* ready = BPF_CORE_READ(item, ffd.file);
  return first == &poll->rdllist || !ready ? file : ready;
}

// Whether the descriptor still names that file: then the call that it is in holds the file.
static __always_inline int has_wait_target(struct task_struct* task, const struct kernel_thread* t) {
  if (t->off.waits_for_what == KERNEL_WAITS_FOR_TIME) return 1;
  if (!t->off.file) return 0;
  struct files_struct* files = 0;
  bpf_probe_read_kernel(&files, 8, &task->files);
  struct fdtable* table = BPF_CORE_READ(files, fdt);
  __u64 file = 0;
  if (!table || (__u32)t->off.waits_for >= BPF_CORE_READ(table, max_fds)) return 0;
  bpf_probe_read_kernel(&file, 8, BPF_CORE_READ(table, fd) + t->off.waits_for);
  return file == t->off.file;
}

// Verified once in each program, and not together with everything before it.
__noinline int send_wait_target(const struct kernel_thread* t, __u32 tid) {
  __u32 zero = 0;
  struct wait_target* to = t ? bpf_map_lookup_elem(&wait_targets, &zero) : 0;
  if (!to) return 0;
  struct kernel_wait_target* head = &to->head;
  struct file* file = (void*)t->off.file;
  __builtin_memset(head, 0, sizeof *head);
  head->head.type = KERNEL_WAIT_TARGET;
  head->head.id = t->id;
  head->thread = tid;
  head->since = t->off.since;
  head->others = t->off.waits_for_others;
  if (t->off.waits_for_what == KERNEL_WAITS_FOR_TIME) {
    head->flags = KERNEL_WAIT_TARGET_NONE;
    return send(to, sizeof *head);
  }
  if (IS_EPOLL(t->off.system_call)) file = ready_of(head, file);
  struct inode* inode = BPF_CORE_READ(file, f_inode);
  head->inode = BPF_CORE_READ(inode, i_ino);
  head->mode = BPF_CORE_READ(inode, i_mode);
  head->access = BPF_CORE_READ(file, f_mode) & 3;
  head->magic = (__u32)BPF_CORE_READ(inode, i_sb, s_magic);
  if (head->magic == MAGIC_SOCKETS) {
    read_socket(to, file);
  } else {
    if (head->magic == MAGIC_PIDS) {
      struct pid* pid = BPF_CORE_READ(inode, i_private);
      head->process = number_of(pid);
    }
    read_path(to, file);
  }
  return send(to, sizeof *head + at_most(head->size, KERNEL_PATH_BYTES));
}
