#include "phlox/sampler/session/task_groups.h"

namespace phlox::sampler {

uint32_t TaskGroups::group_of(const python::TaskFunction& function, profile::EventLoopId loop,
                              Nanoseconds now) {
  const std::tuple key(loop.value, function.qualified_name, function.file, function.first_line);
  const auto found = group_at_.find(key);
  if (found != group_at_.end()) return found->second;
  if (groups_.size() >= kMostGroups) return kNone;
  const auto index = static_cast<uint32_t>(groups_.size());
  group_at_.emplace(key, index);
  profile::Frame frame;
  frame.function = function.name;
  frame.qualified_name = function.qualified_name;
  frame.file = function.file;
  frame.first_line = function.first_line;
  Group& group = groups_.emplace_back();
  group.id = profile::TaskGroupId(++ids_);
  group.row.loop = loop;
  group.row.frame = interner_.frame(frame);
  group.began = now;
  return index;
}

void TaskGroups::leave(const Member& member) {
  ++groups_[member.group].row.gone;
}

void TaskGroups::add_member(const python::AsyncTask& task, uint32_t index, Nanoseconds now) {
  Group& group = groups_[index];
  ++group.row.last;
  if (task.unobserved) ++group.row.unobserved;
  const auto [at, is_new] = members_.try_emplace(task.address.value, Member{index, census_});
  if (!is_new && at->second.group == index) {
    at->second.census = census_;
    return;
  }
  if (!is_new) leave(at->second);
  at->second = {index, census_};
  if (group.began == now) return;
  ++group.row.begun;
  group.begins += static_cast<double>(now - group.began);
  group.row.last_begin = now - group.began;
  group.has_risen = true;
}

// A task that changed while it was read is missing from one census, but not from two.
void TaskGroups::end_census(Nanoseconds now) {
  for (auto one = members_.begin(); one != members_.end();) {
    if (census_ - one->second.census < 2) {
      ++one;
      continue;
    }
    leave(one->second);
    one = members_.erase(one);
  }
  for (Group& group : groups_) {
    profile::TaskGroup& row = group.row;
    ++row.times;
    row.lasted = now - group.began;
    if (group.began == now) row.first = row.last;
    if (group.has_risen) ++row.rises;
    group.has_risen = false;
    if (row.begun > 0)
      row.mean_begin = static_cast<Nanoseconds>(group.begins / static_cast<double>(row.begun));
  }
}

std::vector<profile::TaskGroupId> TaskGroups::add(const python::AsyncTasks& tasks,
                                                  const std::vector<profile::EventLoopId>& loops,
                                                  Nanoseconds now) {
  ++census_;
  for (Group& group : groups_) group.row.last = group.row.unobserved = 0;
  Known known;
  std::vector<profile::TaskGroupId> group_of_task(tasks.tasks.size());
  for (size_t i = 0; i < tasks.tasks.size(); ++i) {
    const python::AsyncTask& task = tasks.tasks[i];
    if (task.frames.empty()) continue;
    const auto [at, is_new] = known.try_emplace({task.loop, task.frames.front().function}, kNone);
    if (is_new) at->second = group_of(tasks.functions[at->first.second], loops[task.loop], now);
    if (at->second == kNone) continue;
    add_member(task, at->second, now);
    group_of_task[i] = groups_[at->second].id;
  }
  end_census(now);
  return group_of_task;
}

void TaskGroups::add_again(Nanoseconds now) {
  for (Group& group : groups_) {
    ++group.row.times;
    group.row.lasted = now - group.began;
  }
}

void TaskGroups::put() {
  for (const Group& group : groups_) sink_.put_task_group(group.id, group.row);
}

}  // namespace phlox::sampler
