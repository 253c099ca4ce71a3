#include "phlox/report/await_groups.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

namespace phlox::report {
namespace {

using profile::TaskState;
using profile::TaskTime;

struct Gathered {
  LoopAwaits loop;
  struct Group {
    AwaitGroup row;
    Nanoseconds most = -1;  // of one chain of coroutines
  };
  std::map<std::tuple<profile::FrameId, std::string, std::string>, Group> groups;
};

void add_to_group(Gathered& of, profile::FrameId outermost, const TaskTime& time, uint32_t number) {
  Gathered::Group& group = of.groups[{outermost, time.kind, time.awaited}];
  AwaitGroup& row = group.row;
  row.frame = outermost;
  row.kind = time.kind;
  row.awaited = time.awaited;
  row.time += time.time;
  row.seen += time.seen;
  row.longest = std::max(row.longest, time.longest);
  row.at_end += time.at_end;
  row.went_on += time.went_on;
  row.rows.push_back(number);
  if (time.time <= group.most) return;
  group.most = time.time;
  row.stack = time.stack;
}

}  // namespace

std::vector<LoopAwaits> loop_awaits(const profile::TaskRows& rows) {
  // Parents come before children.
  std::vector<profile::FrameId> outermost(rows.stacks.size() + 1);
  for (size_t i = 0; i < rows.stacks.size(); ++i) {
    const profile::TaskStack& stack = rows.stacks[i];
    outermost[i + 1] = stack.parent ? outermost[stack.parent.value] : stack.frame;
  }
  std::map<profile::EventLoopId, Gathered> loops;
  for (uint32_t number = 0; number < rows.times.size(); ++number) {
    const TaskTime& time = rows.times[number];
    if (!time.loop) continue;
    Gathered& of = loops[time.loop];
    of.loop.loop = time.loop;
    if (time.state == TaskState::ready) of.loop.ready += time.time;
    if (time.state == TaskState::running) of.loop.running += time.time;
    if (time.state != TaskState::waiting) continue;
    of.loop.waiting += time.time;
    add_to_group(of, outermost[time.stack.value], time, number);
  }
  std::vector<LoopAwaits> all;
  for (auto& [id, of] : loops) {
    for (auto& [key, group] : of.groups) of.loop.groups.push_back(std::move(group.row));
    std::stable_sort(of.loop.groups.begin(), of.loop.groups.end(),
                     [](const AwaitGroup& a, const AwaitGroup& b) { return a.time > b.time; });
    all.push_back(std::move(of.loop));
  }
  std::stable_sort(all.begin(), all.end(),
                   [](const LoopAwaits& a, const LoopAwaits& b) { return a.waiting > b.waiting; });
  return all;
}

profile::TaskCensus census_of(const profile::TaskRows& rows, profile::ProcessId process) {
  profile::TaskCensus sum;
  sum.process = process;
  for (const profile::TaskCensus& row : rows.censuses) {
    if (row.process != process) continue;
    sum.times += row.times;
    sum.span += row.span;
    sum.cost += row.cost;
    sum.tasks += row.tasks;
    sum.unproved += row.unproved;
    sum.ended += row.ended;
    sum.beyond += row.beyond;
    sum.without_stack += row.without_stack;
    if (!row.problem.empty()) sum.problem = row.problem;
  }
  return sum;
}

std::vector<profile::FrameId> task_frames(const profile::TaskRows& rows, profile::TaskStackId stack) {
  std::vector<profile::FrameId> frames;
  for (; stack; stack = rows.stacks[stack.value - 1].parent)
    frames.push_back(rows.stacks[stack.value - 1].frame);
  std::reverse(frames.begin(), frames.end());
  return frames;
}

Nanoseconds between_censuses(uint64_t times, Nanoseconds span) {
  return times > 0 ? span / static_cast<Nanoseconds>(times) : 0;
}

}  // namespace phlox::report
