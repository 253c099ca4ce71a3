// Follows the tasks of single requests (python/request_tasks.h) from census to census, and keeps the longest
// ones, each with what its task and the tasks that it waits for awaited. A task is known by its address and
// by its number, which asyncio gives to one task only: the next task at the address is another request. Pure:
// gets what was read, and passes rows to a TaskSink. Called by the recorder's thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "phlox/profile/task_time.h"
#include "phlox/python/async_tasks.h"

namespace phlox::sampler {

// Numbers of rows, shared by all programs of a recording.
struct RequestIds {
  uint32_t requests = 0, parts = 0;
};

class TaskRequests {
 public:
  // Of one program: kept, and followed at a time.
  static constexpr size_t kMostRequests = 100, kMostFollowed = 20'000;
  // Of one request: its own, and as many of the tasks that it waits for.
  static constexpr size_t kMostParts = 12;
  static constexpr size_t kMostPartsFollowed = 64;
  // Tasks that a request waits for, and of all requests together, in one census. The others have no parts.
  static constexpr size_t kMostAwaited = 1'000, kMostAwaitedInAll = 100'000;

  TaskRequests(profile::TaskSink& sink, RequestIds& ids) : sink_(sink), ids_(ids) {}

  // `weight`: the time since the last census; 0: there was none.
  struct Moment {
    Nanoseconds begin = 0, took = 0, weight = 0;
  };
  // `loops`: the rows of `tasks.loops`. `times`: the row of each task.
  void add(const python::AsyncTasks& tasks, const std::vector<profile::EventLoopId>& loops,
           const std::vector<profile::TaskTimeId>& times, const Moment& moment);
  // The program has not run since the last census.
  void add_again(Nanoseconds now, Nanoseconds weight);
  // The program has ended.
  void end(Nanoseconds now);
  // Reports the longest that have changed.
  void put();

 private:
  struct Part {
    profile::TaskTimeId time;
    bool awaited = false;
    Nanoseconds duration = 0;
    uint64_t tasks = 0;  // in the last census
  };
  struct Visit {
    uint64_t number = 0;
    profile::Request row;
    std::vector<Part> parts;
    uint32_t missed = 0;                // censuses in a row
    std::optional<Nanoseconds> absent;  // after the first complete one of them
    std::optional<size_t> slot;
    bool has_changed = true;
  };
  // Rows of the recording that a request uses.
  struct Slot {
    profile::RequestId id;
    std::vector<profile::RequestPartId> parts;
  };

  Visit* find(const python::AsyncTask& task, profile::EventLoopId loop, const Moment& moment);
  void add_parts(Visit& visit, const python::AsyncTasks& tasks, uint32_t task,
                 const std::vector<profile::TaskTimeId>& times, Nanoseconds time);
  static void add_part(Visit& visit, profile::TaskTimeId time, bool awaited, Nanoseconds duration);
  void end_missed(Nanoseconds now, bool is_complete);
  void finish(Visit visit, std::optional<Nanoseconds> latest_end);
  std::vector<Visit*> longest();
  void put(Visit& visit);

  profile::TaskSink& sink_;
  RequestIds& ids_;
  std::unordered_map<uint64_t, Visit> visits_;  // by the task's address
  std::vector<Visit> ended_;
  std::vector<Slot> slots_;
  std::vector<size_t> free_slots_;
  std::optional<Nanoseconds> last_complete_;  // the last census that found all tasks
  bool was_complete_ = false;
  size_t awaited_left_ = 0;  // of this census
};

}  // namespace phlox::sampler
