// What tasks of event loops await, made by hand, with the stacks of loops and of thread pools.
#pragma once

#include <string>
#include <vector>

#include "phlox/profile/profile.h"
#include "phlox/profile/task_time.h"
#include "support/profile_of.h"

namespace phlox::test {

inline const std::string kLoop =
    "main;/usr/lib/python3.12/asyncio/runners.py/Runner.run;"
    "/usr/lib/python3.12/asyncio/base_events.py/BaseEventLoop.run_forever;"
    "/usr/lib/python3.12/asyncio/base_events.py/BaseEventLoop._run_once;"
    "/usr/lib/python3.12/asyncio/events.py/Handle._run;";
inline const std::string kUvloop = "main;/usr/lib/python3.12/asyncio/runners.py/Runner.run;";
inline const std::string kPool =
    "bootstrap;/usr/lib/python3.12/concurrent/futures/thread.py/_worker;"
    "/usr/lib/python3.12/concurrent/futures/thread.py/_WorkItem.run;";
inline const std::string kAnyio =
    "bootstrap;/venv/lib/python3.12/site-packages/anyio/_backends/_asyncio.py/WorkerThread.run;";
inline const std::string kFastApi =
    "/venv/lib/python3.12/site-packages/fastapi/routing.py/run_endpoint_function";

// A profile with one loop in one thread, and what its tasks await.
struct TasksOf {
  TasksOf() {
    rows.put_event_loop(phlox::profile::EventLoopId(1), {phlox::profile::ProcessId(1), thread, "asyncio"});
  }

  phlox::profile::TaskStackId stack(const std::vector<std::string>& frames) {
    phlox::profile::TaskStackId parent;
    for (const std::string& frame : frames) {
      const phlox::profile::TaskStackId id(static_cast<uint32_t>(rows.stacks.size() + 1));
      rows.put_task_stack(id, {parent, maker.frame(frame)});
      parent = id;
    }
    const phlox::profile::TaskTime time{phlox::profile::EventLoopId(1), parent};
    rows.put_task_time(phlox::profile::TaskTimeId(static_cast<uint32_t>(rows.times.size() + 1)), time);
    return parent;
  }
  phlox::profile::TaskStackId handler(const std::string& name) { return stack({"run_asgi", kFastApi, name}); }
  // Tasks of `coroutine` that a task at `waiter` waited for.
  void waits(const std::string& coroutine, phlox::profile::TaskStackId waiter, uint64_t seen) {
    const phlox::profile::TaskGroupId group(static_cast<uint32_t>(rows.groups.size() + 1));
    rows.put_task_group(group, {phlox::profile::EventLoopId(1), maker.frame(coroutine)});
    rows.put_task_waiter(phlox::profile::TaskWaiterId(static_cast<uint32_t>(rows.waiters.size() + 1)),
                         {group, waiter, seen});
  }
  // Threads of a pool that run `function`, for which a task at `waiter` waited.
  void waits_for_job(const std::string& function, phlox::profile::TaskStackId waiter, uint64_t seen) {
    rows.put_job_waiter(phlox::profile::JobWaiterId(static_cast<uint32_t>(rows.job_waiters.size() + 1)),
                        {phlox::profile::ProcessId(1), maker.frame(function), waiter, seen});
  }

  phlox::profile::Profile profile;
  ProfileMaker maker{profile};
  phlox::profile::ThreadId thread = maker.thread("MainThread");
  phlox::profile::TaskRows rows;
};

}  // namespace phlox::test
