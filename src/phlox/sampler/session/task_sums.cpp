#include "phlox/sampler/session/task_sums.h"

#include <algorithm>
#include <utility>

#include "phlox/base/spread.h"
#include "phlox/profile/library_file.h"

namespace phlox::sampler {
namespace {

profile::TaskState state_of(python::TaskState state) {
  if (state == python::TaskState::running) return profile::TaskState::running;
  return state == python::TaskState::waiting ? profile::TaskState::waiting : profile::TaskState::ready;
}

}  // namespace

std::vector<profile::EventLoopId> TaskSums::loops_of(const std::vector<python::AsyncLoop>& loops,
                                                     const ThreadOf& thread_of) {
  std::vector<profile::EventLoopId> rows;
  std::unordered_map<uint64_t, uint64_t> python_ids;
  for (const python::AsyncLoop& loop : loops) {
    const auto before = python_ids_.find(loop.address.value);
    uint64_t id = loop.python_id;
    if (id == 0 && before != python_ids_.end()) id = before->second;
    python_ids[loop.address.value] = id;
    rows.push_back(loop_of(loop.type, id, thread_of));
  }
  python_ids_ = std::move(python_ids);
  return rows;
}

profile::EventLoopId TaskSums::loop_of(const std::string& type, uint64_t python_id,
                                       const ThreadOf& thread_of) {
  auto found = loops_.find({python_id, type});
  if (found == loops_.end()) {
    // All loops beyond the limit share the last row.
    if (loops_.size() >= kMostLoops) return profile::EventLoopId(ids_.loops);
    found = loops_.emplace(std::pair(python_id, type), Loop{}).first;
    found->second.id = profile::EventLoopId(++ids_.loops);
    found->second.row = {process_, python_id != 0 ? thread_of(python_id) : profile::ThreadId(), type};
    sink_.put_event_loop(found->second.id, found->second.row);
  }
  Loop& row = found->second;
  if (!row.row.thread && python_id != 0) {
    row.row.thread = thread_of(python_id);
    if (row.row.thread) sink_.put_event_loop(row.id, row.row);
  }
  return row.id;
}

profile::FrameId TaskSums::frame_of(const python::AsyncTasks& tasks, const python::TaskFrame& frame) {
  const uint64_t key = uint64_t{frame.function} << 32 | static_cast<uint32_t>(frame.line);
  const auto [at, is_new] = frames_.try_emplace(key);
  if (is_new) {
    const python::TaskFunction& function = tasks.functions[frame.function];
    profile::Frame row;
    row.function = function.name;
    row.qualified_name = function.qualified_name;
    row.file = function.file;
    row.first_line = function.first_line;
    row.line = frame.line;
    at->second = interner_.frame(row);
  }
  return at->second;
}

// Of what a running task has called, this keeps everything down to the innermost function outside of
// libraries. What a library does there would only make more stacks.
std::span<const python::TaskFrame> TaskSums::kept_frames(const python::AsyncTasks& tasks,
                                                         const python::AsyncTask& task) const {
  const std::span<const python::TaskFrame> frames = task.frames;
  const size_t own = frames.size() - task.called;
  size_t kept = ids_.called < kMostCalled ? frames.size() : own;
  while (kept > own && profile::is_library_file(tasks.functions[frames[kept - 1].function].file)) --kept;
  return frames.first(kept);
}

// None: it has no frames, or there are too many stacks.
profile::TaskStackId TaskSums::stack_of(const python::AsyncTasks& tasks,
                                        std::span<const python::TaskFrame> frames) {
  profile::StackId parent;
  for (const python::TaskFrame& one : frames) {
    const profile::FrameId frame = frame_of(tasks, one);
    profile::StackId stack = ids_.stacks.find(parent, frame);
    if (!stack) {
      if (ids_.stacks.size() >= kMostStacks) return {};
      stack = ids_.stacks.add(parent, frame).first;
      sink_.put_task_stack(profile::TaskStackId(stack.value), {profile::TaskStackId(parent.value), frame});
    }
    parent = stack;
  }
  return profile::TaskStackId(parent.value);
}

uint32_t TaskSums::row_of(profile::EventLoopId loop, profile::TaskStackId stack,
                          const python::AsyncTask& task) {
  const profile::TaskState state = state_of(task.state);
  // By its length, each sleep would be a row of its own.
  const bool has_class = task.kind != python::AwaitedKind::sleep;
  Key key{loop.value, stack.value, state, task.kind, has_class ? task.awaited : std::string()};
  auto found = row_at_.find(key);
  if (found != row_at_.end()) return found->second;
  if (ids_.times >= kMostRows && stack) {
    ++without_stack_;
    python::AsyncTask bare;
    bare.state = task.state;
    return row_of(loop, {}, bare);
  }
  const auto row = static_cast<uint32_t>(rows_.size());
  Row& made = rows_.emplace_back();
  made.id = profile::TaskTimeId(++ids_.times);
  if (task.called > 0) ++ids_.called;
  made.time.loop = loop;
  made.time.stack = stack;
  made.time.state = state;
  made.time.kind = python::awaited_key(task.kind);
  made.time.awaited = std::get<std::string>(key);
  made.time.changes.emplace();
  row_at_.emplace(std::move(key), row);
  return row;
}

void TaskSums::add_time(uint32_t row, Nanoseconds time) {
  rows_[row].time.time += time;
  rows_[row].has_grown = true;
}

TaskSums::Seen TaskSums::add_task(const python::AsyncTask& task, uint32_t row, Nanoseconds weight,
                                  Nanoseconds part) {
  add_time(row, part);
  profile::TaskTime& time = rows_[row].time;
  ++time.seen;
  const auto before = last_.find(task.address.value);
  const bool stayed = before != last_.end() && before->second.row == row;
  const Nanoseconds since = stayed ? before->second.since + weight : 0;
  time.longest = std::max(time.longest, since);
  return {row, since, task.wait_identity};
}

// Of each row: how many tasks are there, and how many no longer are.
void TaskSums::compare(const std::unordered_map<uint64_t, Seen>& now) {
  for (const auto& [address, before] : last_) {
    rows_[before.row].time.at_end = 0;
    --rows_[before.row].change;
    const auto after = now.find(address);
    const bool stayed =
        after != now.end() && after->second.row == before.row && after->second.identity == before.identity;
    if (!stayed) ++rows_[before.row].time.went_on;
  }
  for (const auto& [address, after] : now) {
    ++rows_[after.row].time.at_end;
    ++rows_[after.row].change;
  }
}

// See TaskChanges. A process has signs of its own. `weight` 0: of the first census, which shows no change.
void TaskSums::put_changes(const std::unordered_map<uint64_t, Seen>& now, Nanoseconds weight) {
  const size_t bin = censuses_ % profile::TaskChanges().bins.size();
  const bool is_less = (Spread()(uint64_t{process_.value} << 40 | censuses_) & 1) != 0;
  if (weight > 0) ++censuses_;
  for (const auto* tasks : {&std::as_const(last_), &now}) {
    for (const auto& [address, seen] : *tasks) {
      Row& row = rows_[seen.row];
      const int64_t change = std::exchange(row.change, 0);
      row.time.changes->bins[bin] += static_cast<float>((is_less ? -change : change) * weight);
    }
  }
}

void TaskSums::count_waiters(const python::AsyncTasks& tasks, const std::vector<profile::TaskGroupId>& groups,
                             const std::vector<profile::TaskStackId>& stacks) {
  const FirstWaiters waiters = first_waiters(tasks, stacks);
  waiters_.add(waiters, groups, stacks);
  job_waiters_.begin();
  for (const python::PoolJob& job : tasks.jobs) {
    const bool is_known = job.task && stacks[*job.task];
    job_waiters_.add(
        frame_of(tasks, {job.function, 0}),
        is_known ? stack_of(tasks, frames_with_waiters(tasks, waiters, *job.task)) : profile::TaskStackId());
  }
}

void TaskSums::put_ready(const python::AsyncTasks& tasks, const std::vector<profile::EventLoopId>& loops,
                         Nanoseconds took) {
  std::map<profile::EventLoopId, uint64_t> ready;
  for (const python::AsyncTask& task : tasks.tasks) {
    if (state_of(task.state) == profile::TaskState::ready) ++ready[loops[task.loop]];
  }
  for (const auto& [loop, number] : ready) {
    const profile::ReadyTasksId id(ids_.ready++ % kMostReady + 1);
    sink_.put_ready_tasks(id, {loop, time_, took, number});
  }
}

// The rows of those that were there at the last census.
std::vector<uint32_t> TaskSums::rows_of_last(std::span<const RemoteAddress> tasks) const {
  std::vector<uint32_t> rows;
  for (const RemoteAddress task : tasks) {
    if (const auto last = last_.find(task.value); last != last_.end()) rows.push_back(last->second.row);
  }
  return rows;
}

void TaskSums::add(const python::AsyncTasks& tasks, Nanoseconds weight, const ThreadOf& thread_of,
                   Nanoseconds took) {
  frames_.clear();  // a function's number is valid in one census only
  const std::vector<profile::EventLoopId> loops = loops_of(tasks.loops, thread_of);
  std::unordered_map<uint64_t, Seen> now;
  now.reserve(tasks.tasks.size());
  const Nanoseconds of_last = any_ ? weight / 2 : 0;
  const Nanoseconds between = any_ ? weight : 0;
  any_ = true;
  time_ += weight;
  for (const auto& [address, seen] : last_) add_time(seen.row, of_last);
  for (const uint32_t row : missed_) add_time(row, of_last);
  missed_ = rows_of_last(tasks.missed);
  for (const uint32_t row : missed_) add_time(row, weight - of_last);
  std::vector<profile::TaskStackId> stacks;
  stacks.reserve(tasks.tasks.size());
  std::vector<profile::TaskTimeId> times;
  times.reserve(tasks.tasks.size());
  for (const python::AsyncTask& task : tasks.tasks) {
    const profile::TaskStackId stack = stacks.emplace_back(stack_of(tasks, kept_frames(tasks, task)));
    if (!stack && !task.frames.empty()) ++without_stack_;
    const uint32_t row = row_of(loops[task.loop], stack, task);
    times.push_back(rows_[row].id);
    now[task.address.value] = add_task(task, row, weight, weight - of_last);
  }
  compare(now);
  put_changes(now, between);
  last_ = std::move(now);
  count_waiters(tasks, groups_.add(tasks, loops, time_), stacks);
  put_ready(tasks, loops, took);
  requests_.add(tasks, loops, times, {time_, took, between});
}

void TaskSums::add_again(Nanoseconds weight) {
  time_ += weight;
  groups_.add_again(time_);
  job_waiters_.add_again();
  requests_.add_again(time_, weight);
  for (auto& [address, seen] : last_) {
    add_time(seen.row, weight);
    ++rows_[seen.row].time.seen;
    seen.since += weight;
    rows_[seen.row].time.longest = std::max(rows_[seen.row].time.longest, seen.since);
  }
}

void TaskSums::end(Nanoseconds weight) {
  for (const auto& [address, seen] : last_) add_time(seen.row, weight);
  for (const uint32_t row : missed_) add_time(row, weight);
  requests_.end(time_ + weight);
}

void TaskSums::put() {
  for (Row& row : rows_) {
    if (row.has_grown) sink_.put_task_time(row.id, row.time);
    row.has_grown = false;
  }
  groups_.put();
  waiters_.put();
  job_waiters_.put();
  requests_.put();
}

}  // namespace phlox::sampler
