// How the time of event loops divides, and which pools had no worker left. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "phlox/view/sample_filter.h"

namespace phlox::view {

// One thread, while an event loop ran in it.
struct LoopTime {
  profile::ThreadId thread;
  std::string_view kind;    // "asyncio", "gevent"; "native": a loop in C without a known name
  Nanoseconds wall = 0;     // the sum of the others
  Nanoseconds idle = 0;     // it waited for events
  Nanoseconds running = 0;  // it ran callbacks, or its own code
  Nanoseconds blocked = 0;  // in a call from a callback
  Nanoseconds gil = 0;      // it waited for the GIL
  Nanoseconds cpu = 0;      // it waited for a CPU
  Nanoseconds unknown = 0;
  profile::FrameId blocked_in;  // the function that was blocked longest: the caller of the waiting function
  Nanoseconds blocked_there = 0;
};
// The longest first. `filter`: must judge.
std::vector<LoopTime> loop_times(const profile::Profile& profile, const SampleFilter& filter);
// "idle 62.0 %, running callbacks 21.0 %, blocked in calls 12.0 % (mostly in fetch, app.py:7), waiting for
// the GIL 4.0 %, for a CPU 1.0 %": parts of the loop's time.
std::string loop_words(const profile::Profile& profile, const LoopTime& loop);
// "The event loop of MainThread (4711), asyncio: ", and the text above.
std::string loop_sentence(const profile::Profile& profile, const LoopTime& loop);

// Workers of one pool, threads or processes, none of which was idle for long. If it is not known what some of
// them did: threads for which calls waited at every count.
struct BusyPool {
  std::string_view kind;  // "ThreadPoolExecutor"
  std::string name;       // of its threads, without their number; empty: not known, or processes
  bool of_processes = false;
  size_t workers = 0;        // all of them, all busy
  bool by_count = false;     // proved by the calls that waited, not by the workers' activity
  Nanoseconds wall = 0;      // of all workers
  Nanoseconds at_work = 0;   // of that
  Nanoseconds blocked = 0;   // of that
  profile::FrameId running;  // the function that ran longest, among those given to the workers
  Nanoseconds running_wall = 0;
  // Calls that waited for a worker: the average over time, and the maximum; none: not known.
  std::optional<double> calls_waiting;
  int64_t most_calls_waiting = 0;
};
std::vector<BusyPool> busy_pools(const profile::Profile& profile, const SampleFilter& filter);
// "2 of 2 threads of ThreadPoolExecutor (pool_...) were at work 100.0 % of the time, 99.0 % of it in
// call_upstream (app.py:4); 12 calls waited for a thread on average, at most 20". By count:
// "calls waited for one of the 40 threads of AnyIO (AnyIO worker thread...) whenever they were counted: 12 on
// average, at most 20; these threads spent the longest time in route_sync (app.py:4)".
std::string busy_pool_words(const profile::Profile& profile, const BusyPool& pool);

}  // namespace phlox::view
