// What is known by name to wait, and for what: functions of the standard library and of some pools, and
// system calls. Read by the rule of work (work.h), which decides what it means; knows of no recording.
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <string_view>

#include "phlox/profile/model.h"

namespace phlox::profile {

struct KnownFunction {
  std::string_view file;  // how it ends
  std::string_view function;
};

// Where the standard library, or who replaces it, waits for anything that may happen: sockets, timers.
inline constexpr KnownFunction kEventWaits[] = {
    {"/selectors.py", "select"}, {"/socket.py", "accept"},     {"/wasyncore.py", "poll"},
    {"/asyncore.py", "poll"},    {"/workers/sync.py", "wait"},  // gunicorn's sync worker calls
                                                                // select.select() there
};
// Where it waits for a notification by another thread. Not a lock: who wants that has something to do.
inline constexpr KnownFunction kNotificationWaits[] = {
    {"/threading.py", "wait"},
    {"/threading.py", "join"},
    {"/threading.py", "_wait_for_tstate_lock"},
    {"/queue.py", "get"},
    {"/multiprocessing/queues.py", "get"},
    {"/multiprocessing/connection.py", "_recv"},
    {"/multiprocessing/connection.py", "_recv_bytes"},
    {"/multiprocessing/connection.py", "recv_bytes"},
    {"/gunicorn/arbiter.py", "wait_for_signals"},  // SimpleQueue.get, which is C; older ones `sleep`,
    {"/gunicorn/arbiter.py", "sleep"},             // of select.select
    {"/billiard/connection.py", "_recv"},          // Celery's multiprocessing
    {"/billiard/connection.py", "_recv_bytes"},
    {"/billiard/connection.py", "recv_bytes"},
    {"/billiard/queues.py", "get"},
    {"/billiard/queues.py", "get_payload"},
    {"/billiard/pool.py", "_recv"},
    {"/billiard/pool.py", "receive"},
};
// Beneath one of those: the lock of a queue between processes, held by the one that waits for what comes.
inline constexpr KnownFunction kQueueLocks[] = {
    {"/multiprocessing/synchronize.py", "__enter__"},
    {"/billiard/synchronize.py", "__enter__"},
};
// Where a thread waits for other threads or for child processes to end, or for what they were given to do.
inline constexpr KnownFunction kWaitsForOthers[] = {
    {"/threading.py", "join"},
    {"/concurrent/futures/_base.py", "result"},
    {"/concurrent/futures/_base.py", "exception"},
    {"/concurrent/futures/_base.py", "wait"},
    {"/concurrent/futures/_base.py", "as_completed"},
    {"/multiprocessing/pool.py", "wait"},
    {"/multiprocessing/pool.py", "next"},
    {"/joblib/parallel.py", "_retrieve"},  // sleeps for 10 ms at a time
};
// Where it waits for child processes to end, or for what they print.
inline constexpr KnownFunction kWaitsForChildren[] = {
    {"/subprocess.py", "_try_wait"},
    {"/subprocess.py", "_wait"},
    {"/subprocess.py", "communicate"},
    {"/subprocess.py", "_communicate"},
    {"/multiprocessing/popen_fork.py", "poll"},
    {"/multiprocessing/popen_fork.py", "wait"},
};
// Event loops and pools, from whose own frame is waited for something to do, be it of the main thread.
inline constexpr KnownFunction kLoops[] = {
    {"/gevent/hub.py", "run"},
    {"/eventlet/hubs/hub.py", "run"},
    {"/concurrent/futures/thread.py", "_worker"},
    {"/concurrent/futures/process.py", "_process_worker"},
    {"/loky/process_executor.py", "_process_worker"},
    {"/multiprocessing/pool.py", "worker"},
    {"/billiard/pool.py", "workloop"},
    {"/execnet/gateway_base.py", "read"},  // pytest-xdist's workers
    {"/multiprocessing/resource_tracker.py", "main"},
    {"/loky/backend/resource_tracker.py", "main"},
};

inline bool is_at(const KnownFunction& known, const Frame& frame) {
  return frame.function == known.function && frame.file.ends_with(known.file);
}
template <class Functions>
bool is_among(const Functions& functions, const Frame& frame) {
  return std::any_of(std::begin(functions), std::end(functions),
                     [&](const KnownFunction& known) { return is_at(known, frame); });
}

struct Call {
  int16_t x86_64;   // arch/x86/entry/syscalls/syscall_64.tbl
  int16_t aarch64;  // include/uapi/asm-generic/unistd.h; -1: not there
};
// accept, accept4, epoll_wait, epoll_pwait, epoll_pwait2: nobody calls them but to learn what there is to do.
inline constexpr Call kEventCalls[] = {{43, 202}, {288, 242}, {232, -1}, {281, 22}, {441, 441}};
// Those, and in which threads of a native pool wait: futex, futex_waitv, poll, ppoll, select, pselect6.
inline constexpr Call kPoolCalls[] = {{43, 202},  {288, 242}, {232, -1}, {281, 22}, {441, 441}, {202, 98},
                                      {449, 449}, {7, -1},    {271, 73}, {23, -1},  {270, 72}};
// wait4, waitid.
inline constexpr Call kChildCalls[] = {{61, 260}, {247, 95}};
// clock_nanosleep, nanosleep; before Python 3.11 time.sleep() was select (pselect6 on aarch64).
inline constexpr Call kSleepCalls[] = {{230, 115}, {35, 101}, {23, 72}};

template <class Calls>
bool is_call(const Calls& calls, int16_t number, bool aarch64) {
  return number >= 0 && std::any_of(std::begin(calls), std::end(calls), [&](const Call& call) {
           return number == (aarch64 ? call.aarch64 : call.x86_64);
         });
}

}  // namespace phlox::profile
