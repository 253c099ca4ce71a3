// Functions known by name: those of the standard library that wait, and those of the standard library and of
// common packages in which threads fetch work or do it. Also system calls. The rule of work (work.h,
// wait_places.h) decides what they mean; this file knows no recording.
#pragma once

#include <cstdint>
#include <string_view>

#include "phlox/base/system_call_numbers.h"
#include "phlox/profile/model.h"

namespace phlox::view {

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
const KnownFunction* known_function(const profile::Frame& frame);

// Of functions that may not be known (null). asyncio's Handle is between the loop and its callback.
constexpr bool is_loop(const KnownFunction* known) {
  return known != nullptr && (known->role == Role::loop || known->role == Role::native_loop);
}
constexpr bool is_handle(const KnownFunction* known) {
  return known != nullptr && known->role == Role::work && known->function == "_run";
}

// Of the functions that asyncio's _run_once() calls, only the selector's is named select(). The loop waits in
// it, and a program can give it a selector of its own.
constexpr bool calls_selector(const KnownFunction* known) {
  return known != nullptr && known->role == Role::loop && known->function == "_run_once";
}
inline bool may_be_selector(const profile::Frame& frame) {
  return frame.kind == profile::FrameKind::python && frame.function == "select";
}

constexpr bool is_waiting(Role role) {
  return role >= Role::waits_for_events && role <= Role::queue_lock;
}
constexpr bool is_fetching(Role role) {
  return role >= Role::fetch && role <= Role::native_loop;
}

inline constexpr SystemCall kAcceptCalls[] = {system_call("accept"), system_call("accept4")};
inline constexpr SystemCall kEpollCalls[] = {system_call("epoll_wait"), system_call("epoll_pwait"),
                                             system_call("epoll_pwait2")};
inline constexpr SystemCall kEventCalls[] = {kAcceptCalls[0], kAcceptCalls[1], kEpollCalls[0], kEpollCalls[1],
                                             kEpollCalls[2]};
inline constexpr SystemCall kFutexCalls[] = {system_call("futex"), system_call("futex_waitv")};
// Those in which threads of a native pool wait.
inline constexpr SystemCall kPoolCalls[] = {
    kAcceptCalls[0],      kAcceptCalls[1],       kEpollCalls[0],         kEpollCalls[1],
    kEpollCalls[2],       kFutexCalls[0],        kFutexCalls[1],         system_call("poll"),
    system_call("ppoll"), system_call("select"), system_call("pselect6")};
inline constexpr SystemCall kChildCalls[] = {system_call("wait4"), system_call("waitid")};
// Only for files, which hand out no work.
inline constexpr SystemCall kDiskCalls[] = {system_call("fsync"), system_call("fdatasync"),
                                            system_call("pread64"), system_call("pwrite64")};
// Before Python 3.11 time.sleep() was select(), which is pselect6 on aarch64.
inline constexpr SystemCall kSleepCalls[] = {
    system_call("clock_nanosleep"),
    system_call("nanosleep"),
    {"select", system_call("select").x86_64, system_call("pselect6").aarch64}};

}  // namespace phlox::view
