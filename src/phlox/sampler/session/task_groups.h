// Counts the tasks of each outermost coroutine, census after census: whether their number only grows. Pure:
// gets what was read, and passes rows to a TaskSink. A task is known by its address: one that ended between
// two censuses, whose place another task of the same coroutine has taken, counts as the same. Called by the
// recorder's thread.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "phlox/profile/interner.h"
#include "phlox/profile/task_time.h"
#include "phlox/python/async_tasks.h"

namespace phlox::sampler {

class TaskGroups {
 public:
  // Tasks of further coroutines are not counted. Of one program.
  static constexpr size_t kMostGroups = 10'000;

  // `ids`: the number of rows so far, of all programs.
  TaskGroups(profile::TaskSink& sink, profile::Interner& interner, uint32_t& ids)
      : sink_(sink), interner_(interner), ids_(ids) {}

  // `loops`: the rows of `tasks.loops`. Returns the group of each task; none: it has no coroutine, or no
  // group.
  std::vector<profile::TaskGroupId> add(const python::AsyncTasks& tasks,
                                        const std::vector<profile::EventLoopId>& loops, Nanoseconds now);
  // Nothing has changed since the last census.
  void add_again(Nanoseconds now);
  // Reports all rows that may have changed.
  void put();

 private:
  struct Group {
    profile::TaskGroupId id;
    profile::TaskGroup row;
    Nanoseconds began = 0;   // the first census that found one
    double begins = 0;       // the moments at which tasks were found first, added up
    bool has_risen = false;  // in this census
  };
  struct Member {
    uint32_t group = 0;
    uint32_t census = 0;  // the last one that found it
  };
  // Of one census: the group of a function's tasks in a loop; kNone: it has no room.
  using Known = std::map<std::pair<uint32_t, uint32_t>, uint32_t>;
  static constexpr uint32_t kNone = ~uint32_t{0};

  uint32_t group_of(const python::TaskFunction& function, profile::EventLoopId loop, Nanoseconds now);
  void add_member(const python::AsyncTask& task, uint32_t group, Nanoseconds now);
  void leave(const Member& member);
  void end_census(Nanoseconds now);

  profile::TaskSink& sink_;
  profile::Interner& interner_;
  uint32_t& ids_;
  std::map<std::tuple<uint32_t, std::string, std::string, int32_t>, uint32_t> group_at_;
  std::vector<Group> groups_;
  std::unordered_map<uint64_t, Member> members_;  // by the task's address
  uint32_t census_ = 0;
};

}  // namespace phlox::sampler
