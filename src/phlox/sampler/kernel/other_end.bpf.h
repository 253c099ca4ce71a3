// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Whether the file of a thread's call is the other end of the file that another thread waits for.
#pragma once

#include "wait_target.bpf.h"

// include/net/tcp_states.h
#define STATE_LISTENS 10
#define LOOPBACK_NET 127  // the first byte of an IPv4 address

static __always_inline struct file* file_at(struct task_struct* task, __u64 descriptor) {
  struct fdtable* table = BPF_CORE_READ(task, files, fdt);
  struct file* file = 0;
  if (!table || descriptor >= BPF_CORE_READ(table, max_fds)) return 0;
  bpf_probe_read_kernel(&file, sizeof file, BPF_CORE_READ(table, fd) + descriptor);
  return file;
}

// 0: it is no socket.
static __always_inline struct sock* socket_of(struct file* file) {
  if (!file || (__u32)BPF_CORE_READ(file, f_inode, i_sb, s_magic) != MAGIC_SOCKETS) return 0;
  struct socket* socket = BPF_CORE_READ(file, private_data);
  return BPF_CORE_READ(socket, sk);
}

static __always_inline int is_internet(struct sock* sock) {
  const unsigned short family = BPF_CORE_READ(sock, __sk_common.skc_family);
  return family == FAMILY_INET || family == FAMILY_INET6;
}

struct endpoint {
  __u64 net;
  __u8 own[16], peer[16];
  __u32 own4, peer4;
  __u16 port, peer_port, family, state;
};
static __always_inline void read_endpoint(struct endpoint* to, struct sock* sock) {
  if (bpf_core_field_exists(sock->__sk_common.skc_net.net))
    to->net = (__u64)BPF_CORE_READ(sock, __sk_common.skc_net.net);
  to->family = BPF_CORE_READ(sock, __sk_common.skc_family);
  to->state = BPF_CORE_READ(sock, __sk_common.skc_state);
  to->port = BPF_CORE_READ(sock, __sk_common.skc_num);
  to->peer_port = __builtin_bswap16(BPF_CORE_READ(sock, __sk_common.skc_dport));
  to->own4 = BPF_CORE_READ(sock, __sk_common.skc_rcv_saddr);
  to->peer4 = BPF_CORE_READ(sock, __sk_common.skc_daddr);
  if (!bpf_core_field_exists(sock->__sk_common.skc_v6_daddr)) return;
  BPF_CORE_READ_INTO(&to->own, sock, __sk_common.skc_v6_rcv_saddr);
  BPF_CORE_READ_INTO(&to->peer, sock, __sk_common.skc_v6_daddr);
}

static __always_inline int are_same(const __u8* one, const __u8* other) {
  const __u64 *a = (const void*)one, *b = (const void*)other;
  return a[0] == b[0] && a[1] == b[1];
}

// For a connection within this host.
static __always_inline int is_local(const struct endpoint* one) {
  if (one->family == FAMILY_INET6 && are_same(one->own, one->peer)) return 1;
  return one->peer4 && ((one->peer4 & 0xff) == LOOPBACK_NET || one->peer4 == one->own4);
}

// TCP and connected UDP: whether bytes sent at `acts` arrive at `waits`. An IPv6 socket has its IPv4 address
// as one of IPv4, too.
static __always_inline int faces(const struct endpoint* waits, const struct endpoint* acts) {
  if (waits->net != acts->net || waits->port != acts->peer_port) return 0;
  const int six = waits->family == FAMILY_INET6 && acts->family == FAMILY_INET6;
  if (waits->state == STATE_LISTENS)
    return is_local(acts) && (six || !waits->own4 || waits->own4 == acts->peer4);
  if (waits->peer_port != acts->port) return 0;
  return six ? are_same(waits->own, acts->peer) && are_same(waits->peer, acts->own)
             : waits->own4 == acts->peer4 && waits->peer4 == acts->own4;
}

// For sockets of the internet protocols. Arriving bytes are processed in an interrupt of the sender's CPU,
// usually in its own call; or in that of the next thread there, so the call must be on the other end. A call
// that closes that end proves nothing: its descriptor is no longer in a table.
static __always_inline int acts_on_connection(struct sock* waits, struct task_struct* task, __u64 first) {
  struct endpoint one = {}, other = {};
  struct sock* acts = socket_of(file_at(task, first));
  if (!acts || !is_internet(acts)) return 0;
  read_endpoint(&one, waits);
  read_endpoint(&other, acts);
  return faces(&one, &other);
}

// For pipes, Unix sockets, and files of which the kernel has a single object for all that have it open.
static __always_inline int acts_on_same(struct file* waits, struct task_struct* task, __u64 first) {
  struct file* acts = file_at(task, first);
  if (!waits || !acts) return 0;
  struct unix_sock *one = (void*)socket_of(waits), *other = (void*)socket_of(acts);
  if (one && other) {
    struct sock* waiting = (void*)one;
    if (!bpf_core_field_exists(one->peer) || BPF_CORE_READ(waiting, __sk_common.skc_family) != FAMILY_UNIX)
      return 0;
    return BPF_CORE_READ(one, peer) == (void*)other || BPF_CORE_READ(other, peer) == (void*)one;
  }
  const __u64 object = (__u64)BPF_CORE_READ(waits, private_data);
  return !one && !other && object && object == (__u64)BPF_CORE_READ(acts, private_data);
}
