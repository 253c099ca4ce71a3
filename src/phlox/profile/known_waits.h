// Functions known by name: those of the standard library that wait, and those of the standard library and of
// common packages in which threads fetch work or do it. Also system calls. The rule of work (work.h,
// wait_places.h) decides what they mean; this file knows no recording.
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <string_view>

#include "phlox/profile/model.h"

namespace phlox::profile {

enum class Role : uint8_t {
  none,
  // Functions that wait on behalf of their caller.
  waits_for_events,  // sockets, timers, descriptors
  waits_for_queue,   // a queue or a condition: another thread puts or notifies
  waits_for_condition,
  waits_for_message,   // a pipe or a queue between processes
  waits_for_stream,    // the next bytes of one connection
  waits_for_others,    // the end of other threads, or of the work that they were given
  waits_for_children,  // the end of child processes, or their output
  queue_lock,          // below waits_for_message: the lock of the worker that waits for a message
  // Functions in which threads get and do work.
  fetch,          // waits for something to do; other waits below it are work
  fetch_beneath,  // all waits below it are waits for something to do
  pool,           // a fetch by one of several workers
  loop,           // a fetch of an event loop
  native_loop,    // calls an event loop in C: waits in epoll itself, callbacks are below
  work,           // runs one work item
  root,           // begins a thread
  child_root,     // the first function of a process that multiprocessing started
};

struct KnownFunction {
  std::string_view file;  // the end of its path
  std::string_view function;
  Role role = Role::none;
  std::string_view of = {};  // pool, loop: the name of the library
  // A thread's own run(): a function of that name that others call does not count.
  bool begins_thread = false;
};

// The entry for a Python frame; null: not known.
const KnownFunction* known_function(const Frame& frame);

constexpr bool is_waiting(Role role) {
  return role >= Role::waits_for_events && role <= Role::queue_lock;
}
constexpr bool is_fetching(Role role) {
  return role >= Role::fetch && role <= Role::native_loop;
}

struct Call {
  int16_t x86_64;   // arch/x86/entry/syscalls/syscall_64.tbl
  int16_t aarch64;  // include/uapi/asm-generic/unistd.h; -1: not there
};
// accept, accept4.
inline constexpr Call kAcceptCalls[] = {{43, 202}, {288, 242}};
// epoll_wait, epoll_pwait, epoll_pwait2.
inline constexpr Call kEpollCalls[] = {{232, -1}, {281, 22}, {441, 441}};
// accept, accept4, and the epoll calls above.
inline constexpr Call kEventCalls[] = {{43, 202}, {288, 242}, {232, -1}, {281, 22}, {441, 441}};
// Those, and the calls in which threads of a native pool wait: futex, futex_waitv, poll, ppoll, select,
// pselect6.
inline constexpr Call kPoolCalls[] = {{43, 202},  {288, 242}, {232, -1}, {281, 22}, {441, 441}, {202, 98},
                                      {449, 449}, {7, -1},    {271, 73}, {23, -1},  {270, 72}};
// futex, futex_waitv.
inline constexpr Call kFutexCalls[] = {{202, 98}, {449, 449}};
// wait4, waitid.
inline constexpr Call kChildCalls[] = {{61, 260}, {247, 95}};
// fsync, fdatasync, pread64, pwrite64: only for files, which hand out no work.
inline constexpr Call kDiskCalls[] = {{74, 82}, {75, 83}, {17, 67}, {18, 68}};
// clock_nanosleep, nanosleep; before Python 3.11 time.sleep() was select (pselect6 on aarch64).
inline constexpr Call kSleepCalls[] = {{230, 115}, {35, 101}, {23, 72}};

template <class Calls>
bool is_call(const Calls& calls, int16_t number, bool aarch64) {
  return number >= 0 && std::any_of(std::begin(calls), std::end(calls), [&](const Call& call) {
           return number == (aarch64 ? call.aarch64 : call.x86_64);
         });
}

}  // namespace phlox::profile
