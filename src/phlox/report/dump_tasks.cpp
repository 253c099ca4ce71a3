#include "phlox/report/dump_tasks.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <utility>

#include "phlox/report/table.h"
#include "phlox/view/await_time.h"
#include "phlox/view/frame_labels.h"

namespace phlox::report {
namespace {

constexpr size_t kMostGroups = 100;  // per loop
constexpr size_t kMostNames = 5;     // tasks per sentence
constexpr size_t kMostPhrases = 4;   // per group
constexpr size_t kMostCycles = 10;

using Awaiters = std::vector<std::vector<uint32_t>>;  // by task: the tasks that await it

std::string_view state_key(DumpTaskState state) {
  switch (state) {
    case DumpTaskState::running:
      return "running";
    case DumpTaskState::ready:
      return "ready";
    case DumpTaskState::parked:
      return "parked";
    case DumpTaskState::unstarted:
      return "unstarted";
    case DumpTaskState::waiting:
      break;
  }
  return "waiting";
}

// What a task does, without names of other tasks: the same text for tasks that do the same.
std::string phrase(const DumpTask& task) {
  if (task.state == DumpTaskState::running) return "running";
  if (task.state == DumpTaskState::ready) return "ready to run";
  if (task.state == DumpTaskState::parked) return "parked";
  if (task.state == DumpTaskState::unstarted) return "not started yet";
  if (task.kind.empty()) return "waiting";
  std::string text(view::awaited_by_task(task.kind));
  if (task.kind == "sleep") {
    text = task.awaited.empty() ? text : fmt::format("sleep({})", plain(task.awaited));
  } else if (!task.awaited.empty()) {
    text += fmt::format(" ({})", plain(task.awaited));
  }
  return "waiting for " + text;
}

std::string names_of(const DumpTasks& all, const std::vector<uint32_t>& which) {
  std::string text;
  for (size_t i = 0; i < std::min(which.size(), kMostNames); ++i)
    text += (i == 0 ? "" : ", ") + plain(all.tasks[which[i]].name);
  if (which.size() > kMostNames) text += fmt::format(" and {} more", count_words(which.size() - kMostNames));
  return text;
}

// The holders of the lock that it waits for.
const std::vector<uint32_t>& holders_of(const DumpTasks& all, const DumpTask& task) {
  static const std::vector<uint32_t> kNone;
  return task.lock == 0 ? kNone : all.locks[task.lock - 1].holders;
}

// The difference between tasks that do the same.
std::string detail(const DumpTask& task) {
  if (task.seconds_left) return fmt::format(", {:.1f} s left", *task.seconds_left);
  if (task.subprocess > 0) return fmt::format(", process {}", task.subprocess);
  if (task.socket.empty()) return {};
  return task.peer.empty() ? fmt::format(", {}", plain(task.socket))
                           : fmt::format(", {} connected to {}", plain(task.socket), plain(task.peer));
}

// The same, with details and names of other tasks.
std::string whole_phrase(const DumpTasks& all, const DumpTask& task, const std::vector<uint32_t>& awaiters) {
  std::string text = phrase(task) + detail(task);
  if (!task.awaits.empty()) text += ": " + names_of(all, task.awaits);
  if (const auto& holders = holders_of(all, task); !holders.empty())
    text += ", held by " + names_of(all, holders);
  if (!awaiters.empty()) text += "; awaited by " + names_of(all, awaiters);
  return text;
}

Awaiters awaiters_of(const DumpTasks& all) {
  Awaiters awaiters(all.tasks.size());
  for (size_t i = 0; i < all.tasks.size(); ++i) {
    for (uint32_t awaited : all.tasks[i].awaits) awaiters[awaited].push_back(static_cast<uint32_t>(i));
  }
  return awaiters;
}

std::string frame_text(const DumpTasks& all, const DumpTaskFrame& frame, const DumpLine& line) {
  const DumpTaskFunction& function = all.functions[frame.function];
  std::string out =
      fmt::format("        {} ({}:{})\n", plain(function.qualified_name), plain(function.file), frame.line);
  if (const auto text = line(function.file, frame.line); !text.empty())
    out += fmt::format("            {}\n", plain(text));
  return out;
}

// nullptr: not known.
const profile::Thread* thread_of(const profile::Profile& instant, int32_t pid, uint64_t python_id) {
  for (const profile::Thread& thread : instant.threads()) {
    if (python_id != 0 && thread.python_id == python_id && instant.process(thread.process).pid == pid)
      return &thread;
  }
  return nullptr;
}

std::string job_text(const profile::Profile& instant, const DumpTasks& all, const DumpJob& job,
                     const DumpLine& line) {
  if (job.queued) return "      no thread has begun it yet\n";
  std::string out;
  for (size_t i = job.frames.size(); i-- > 0;) out += frame_text(all, job.frames[i], line);
  const profile::Thread* thread = thread_of(instant, all.pid, job.python_id);
  const std::string where = thread != nullptr ? plain(view::thread_label(*thread)) : "a thread";
  return out + fmt::format("      {}runs in {} for\n", out.empty() ? "" : "which ", where);
}

std::string frames_text(const profile::Profile& instant, const DumpTasks& all, const DumpTask& task,
                        const DumpLine& line) {
  std::string out;
  if (task.job) out += job_text(instant, all, *task.job, line);
  for (size_t i = task.frames.size(); i-- > 0;) out += frame_text(all, task.frames[i], line);
  if (task.frames.empty() && task.state == DumpTaskState::parked) out += "        (no Python frame)\n";
  if (task.cut) out += "        (more frames)\n";
  return out;
}

std::string loop_words(const profile::Profile& instant, const DumpTasks& all, const DumpLoop& loop) {
  const std::string_view what = loop.greenlets ? "Greenlets" : "Event loop";
  if (const profile::Thread* thread = thread_of(instant, all.pid, loop.python_id))
    return fmt::format("{} of {} ({})", what, plain(view::thread_label(*thread)), plain(loop.type));
  return fmt::format("{} ({})", what, plain(loop.type));
}

std::string greenlet_states_words(const std::vector<const DumpTask*>& greenlets) {
  size_t counts[5] = {};
  for (const DumpTask* greenlet : greenlets) ++counts[static_cast<size_t>(greenlet->state)];
  const auto of = [&](DumpTaskState state) { return counts[static_cast<size_t>(state)]; };
  std::string text =
      fmt::format("{}: {} running, {} parked", count_words(greenlets.size()),
                  count_words(of(DumpTaskState::running)), count_words(of(DumpTaskState::parked)));
  if (const size_t unstarted = of(DumpTaskState::unstarted); unstarted > 0)
    text += fmt::format(", {} not started yet", count_words(unstarted));
  return text;
}

std::string states_words(const std::vector<const DumpTask*>& tasks) {
  size_t counts[5] = {};
  for (const DumpTask* task : tasks) ++counts[static_cast<size_t>(task->state)];
  return fmt::format("{} task{}: {} running, {} ready, {} waiting", count_words(tasks.size()),
                     tasks.size() == 1 ? "" : "s", count_words(counts[0]), count_words(counts[1]),
                     count_words(counts[2]));
}

using TaskGroup = std::vector<const DumpTask*>;

// Every greenlet begins in functions of eventlet or gevent.
const DumpTaskFrame& outermost_of_program(const DumpTasks& all, const DumpTask& task) {
  if (!all.loops[task.loop].greenlets) return task.frames.front();
  for (const DumpTaskFrame& frame : task.frames) {
    const std::string& file = all.functions[frame.function].file;
    if (file.find("/eventlet/") == std::string::npos && file.find("/gevent/") == std::string::npos)
      return frame;
  }
  return task.frames.front();
}

// Most tasks first; equal ones in their original order.
std::vector<TaskGroup> groups_of(const DumpTasks& all, const std::vector<const DumpTask*>& tasks) {
  std::map<std::pair<uint32_t, int32_t>, size_t> index;
  std::vector<TaskGroup> groups;
  for (const DumpTask* task : tasks) {
    // Tasks without frames are grouped by state.
    std::pair<uint32_t, int32_t> key{~uint32_t{0}, static_cast<int32_t>(task->state)};
    if (!task->frames.empty()) {
      const DumpTaskFrame& frame = outermost_of_program(all, *task);
      key = {frame.function, frame.line};
    }
    const auto [entry, is_new] = index.try_emplace(key, groups.size());
    if (is_new) groups.emplace_back();
    groups[entry->second].push_back(task);
  }
  std::stable_sort(groups.begin(), groups.end(),
                   [](const TaskGroup& a, const TaskGroup& b) { return a.size() > b.size(); });
  return groups;
}

// For sleeping tasks: "sleep(0.5) to sleep(30)", or "sleep(5)" if all are equal.
class Sleeps {
 public:
  void add(const std::string& argument) {
    double seconds = 0;
    if (std::from_chars(argument.data(), argument.data() + argument.size(), seconds).ec != std::errc())
      return;
    if (shortest_.empty() || seconds < least_) {
      least_ = seconds;
      shortest_ = argument;
    }
    if (longest_.empty() || seconds > most_) {
      most_ = seconds;
      longest_ = argument;
    }
  }
  std::string words() const {
    if (least_ == most_) return fmt::format("sleep({})", plain(shortest_));
    return fmt::format("sleep({}) to sleep({})", plain(shortest_), plain(longest_));
  }

 private:
  std::string shortest_, longest_;
  double least_ = 0, most_ = 0;
};

std::string group_words(const TaskGroup& group) {
  const std::string kSleeps = "waiting for sleep()";
  std::map<std::string, size_t> counts;
  Sleeps sleeps;
  for (const DumpTask* task : group) {
    const bool sleeps_for =
        task->state == DumpTaskState::waiting && task->kind == "sleep" && !task->awaited.empty();
    if (sleeps_for) sleeps.add(task->awaited);
    ++counts[sleeps_for ? kSleeps : phrase(*task)];
  }
  std::vector<std::pair<std::string, size_t>> rows(counts.begin(), counts.end());
  for (auto& [words, count] : rows) {
    if (words == kSleeps) words = "waiting for " + sleeps.words();
  }
  std::stable_sort(rows.begin(), rows.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  if (rows.size() == 1) return rows.front().first;
  std::string text;
  for (size_t i = 0; i < std::min(rows.size(), kMostPhrases); ++i)
    text += fmt::format("{}{} {}", i == 0 ? "" : ", ", count_words(rows[i].second), rows[i].first);
  return rows.size() > kMostPhrases ? text + ", …" : text;
}

std::string groups_text(const profile::Profile& instant, const DumpTasks& all,
                        const std::vector<const DumpTask*>& tasks, const Awaiters& awaiters,
                        const DumpLine& line) {
  std::string out;
  const std::string_view noun = all.loops[tasks.front()->loop].greenlets ? "greenlets" : "tasks";
  const auto groups = groups_of(all, tasks);
  size_t left_out = 0;
  for (size_t i = 0; i < groups.size(); ++i) {
    const TaskGroup& group = groups[i];
    if (i >= kMostGroups) {
      left_out += group.size();
      continue;
    }
    const DumpTask& first = *group.front();
    const auto& of_first = awaiters[static_cast<size_t>(&first - all.tasks.data())];
    const std::string words = group_words(group), of_example = whole_phrase(all, first, of_first);
    if (group.size() == 1) {
      out += fmt::format("    {}: {}\n", plain(first.name), of_example);
    } else {
      out += fmt::format("    {} {}: {}; for example {}{}\n", count_words(group.size()), noun, words,
                         plain(first.name), words == of_example ? std::string() : ": " + of_example);
    }
    out += frames_text(instant, all, first, line);
  }
  if (left_out > 0)
    out += fmt::format("    {} more {}: --async all prints them\n", count_words(left_out), noun);
  return out;
}

std::string each_text(const profile::Profile& instant, const DumpTasks& all,
                      const std::vector<const DumpTask*>& tasks, const Awaiters& awaiters,
                      const DumpLine& line) {
  std::string out;
  for (const DumpTask* task : tasks) {
    const auto& of_task = awaiters[static_cast<size_t>(task - all.tasks.data())];
    out += fmt::format("    {}: {}\n", plain(task->name), whole_phrase(all, *task, of_task));
    out += frames_text(instant, all, *task, line);
  }
  return out;
}

// Circles of tasks that await each other, each circle once.
class Cycles {
 public:
  explicit Cycles(const DumpTasks& all) : all_(all), seen_(all.tasks.size()), on_path_(all.tasks.size()) {}

  std::vector<std::vector<uint32_t>> find() {
    for (uint32_t i = 0; i < all_.tasks.size(); ++i) {
      if (!seen_[i]) search(i);
    }
    return std::move(found_);
  }

 private:
  struct Step {
    uint32_t task;
    size_t next = 0;
  };
  // First the tasks that it awaits, then the holder of its lock. A semaphore has no single holder.
  std::optional<uint32_t> next_of(Step& step) const {
    const DumpTask& task = all_.tasks[step.task];
    const size_t at = step.next++;
    if (at < task.awaits.size()) return task.awaits[at];
    const auto& holders = holders_of(all_, task);
    if (at == task.awaits.size() && task.kind == "lock" && holders.size() == 1) return holders.front();
    return {};
  }
  void enter(uint32_t task) {
    seen_[task] = on_path_[task] = true;
    path_.push_back({task});
  }
  void search(uint32_t root) {
    enter(root);
    while (!path_.empty()) {
      Step& step = path_.back();
      const auto awaited_next = next_of(step);
      if (!awaited_next) {
        on_path_[step.task] = false;
        path_.pop_back();
        continue;
      }
      const uint32_t awaited = *awaited_next;
      if (on_path_[awaited]) {
        keep(awaited);
      } else if (!seen_[awaited]) {
        enter(awaited);
      }
    }
  }
  void keep(uint32_t first) {
    if (found_.size() == kMostCycles) return;
    std::vector<uint32_t> cycle;
    for (size_t i = path_.size(); i-- > 0;) {
      cycle.push_back(path_[i].task);
      if (path_[i].task == first) break;
    }
    std::reverse(cycle.begin(), cycle.end());
    found_.push_back(std::move(cycle));
  }

  const DumpTasks& all_;
  std::vector<bool> seen_, on_path_;
  std::vector<Step> path_;
  std::vector<std::vector<uint32_t>> found_;
};

std::string cycles_text(const DumpTasks& all) {
  std::string out;
  for (const auto& cycle : Cycles(all).find()) {
    out += fmt::format("\nTasks that await each other in a circle: {}", names_of(all, cycle));
    out += fmt::format(", which awaits {}\n", plain(all.tasks[cycle.front()].name));
  }
  return out;
}

// One loop, task or lock of a process, and the ids of its process's first ones in the whole dump.
struct TaskJsonRow {
  const DumpTasks* process;
  size_t index, first_task, first_loop, first_lock;
  const std::vector<uint32_t>* awaiters;
};

void write_task_loop(JsonText& json, const TaskJsonRow& row) {
  const DumpLoop& loop = row.process->loops[row.index];
  json.count("id", row.first_loop + row.index);
  json.integer("pid", row.process->pid);
  json.text("type", loop.type);
  json.count("python_id", loop.python_id);
}

void write_task(JsonText& json, const TaskJsonRow& row) {
  const DumpTask& task = row.process->tasks[row.index];
  auto id = [&](uint32_t of) { json.count("id", row.first_task + of); };
  json.count("id", row.first_task + row.index);
  json.integer("pid", row.process->pid);
  json.count("event_loop", row.first_loop + task.loop);
  json.text("name", task.name);
  json.text("state", state_key(task.state));
  json.text("awaited_kind", task.kind);
  json.text("awaited", task.awaited);
  json.objects("awaits", task.awaits, id);
  json.objects("awaited_by", *row.awaiters, id);
  if (task.seconds_left) json.number("seconds_left", *task.seconds_left);
  json.text("socket", task.socket);
  json.text("peer", task.peer);
  json.integer("subprocess", task.subprocess);
  if (task.lock != 0) json.count("lock", row.first_lock + task.lock - 1);
  json.truth("cut", task.cut);
  const auto write_frame = [&](const DumpTaskFrame& frame) {
    const DumpTaskFunction& function = row.process->functions[frame.function];
    json.text("function", function.name);
    json.text("qualified_name", function.qualified_name);
    json.text("file", function.file);
    json.integer("first_line", function.first_line);
    json.integer("line", frame.line);
  };
  if (task.job) {
    json.object("job", [&] {
      json.truth("queued", task.job->queued);
      json.count("python_id", task.job->python_id);
      json.objects("frames", task.job->frames, write_frame);
    });
  }
  json.objects("frames", task.frames, write_frame);
}

void write_task_lock(JsonText& json, const TaskJsonRow& row) {
  json.count("id", row.first_lock + row.index);
  json.integer("pid", row.process->pid);
  json.objects("holders", row.process->locks[row.index].holders,
               [&](uint32_t task) { json.count("id", row.first_task + task); });
}

}  // namespace

std::vector<std::string> missing_tasks(const DumpTasks& tasks) {
  std::vector<std::string> why;
  if (tasks.unproved > 0)
    why.push_back(fmt::format("{} task{} not shown: changed each time {} read", count_words(tasks.unproved),
                              tasks.unproved == 1 ? " is" : "s are",
                              tasks.unproved == 1 ? "it was" : "they were"));
  if (tasks.ended > 0)
    why.push_back(fmt::format(
        "{} task{} ended before {} read: tasks that began meanwhile are not shown either",
        count_words(tasks.ended), tasks.ended == 1 ? "" : "s", tasks.ended == 1 ? "it was" : "they were"));
  if (tasks.beyond > 0)
    why.push_back(fmt::format("{} task{} not shown: there are too many", count_words(tasks.beyond),
                              tasks.beyond == 1 ? " is" : "s are"));
  if (!tasks.problem.empty()) why.push_back("Some tasks may be missing: " + plain(tasks.problem));
  return why;
}

std::string tasks_text(const profile::Profile& instant, const DumpTasks& all, bool each,
                       const DumpLine& line) {
  std::string out;
  const Awaiters awaiters = awaiters_of(all);
  for (size_t i = 0; i < all.loops.size(); ++i) {
    std::vector<const DumpTask*> tasks;
    for (const DumpTask& task : all.tasks) {
      if (task.loop == i) tasks.push_back(&task);
    }
    if (tasks.empty()) continue;
    const bool greenlets = all.loops[i].greenlets;
    // A program that has greenlets but does not use them has one per thread, whose stack is the thread's.
    const auto runs = [](const DumpTask* task) { return task->state == DumpTaskState::running; };
    if (greenlets && std::all_of(tasks.begin(), tasks.end(), runs)) continue;
    out += fmt::format("\n{}, {}\n", loop_words(instant, all, all.loops[i]),
                       greenlets ? greenlet_states_words(tasks) : states_words(tasks));
    out += each ? each_text(instant, all, tasks, awaiters, line)
                : groups_text(instant, all, tasks, awaiters, line);
  }
  out += cycles_text(all);
  for (const std::string& why : missing_tasks(all)) out += "\n" + why + "\n";
  return out;
}

void write_tasks(JsonText& json, const std::vector<DumpTasks>& processes) {
  std::vector<TaskJsonRow> loops, tasks, locks;
  std::vector<Awaiters> awaiters;
  awaiters.reserve(processes.size());
  size_t first_task = 0, first_loop = 0, first_lock = 0;
  for (const DumpTasks& process : processes) {
    awaiters.push_back(awaiters_of(process));
    for (size_t i = 0; i < process.loops.size(); ++i)
      loops.push_back({&process, i, first_task, first_loop, first_lock, nullptr});
    for (size_t i = 0; i < process.tasks.size(); ++i)
      tasks.push_back({&process, i, first_task, first_loop, first_lock, &awaiters.back()[i]});
    for (size_t i = 0; i < process.locks.size(); ++i)
      locks.push_back({&process, i, first_task, first_loop, first_lock, nullptr});
    first_task += process.tasks.size();
    first_loop += process.loops.size();
    first_lock += process.locks.size();
  }
  json.objects("event_loops", loops, [&](const TaskJsonRow& row) { write_task_loop(json, row); });
  json.objects("tasks", tasks, [&](const TaskJsonRow& row) { write_task(json, row); });
  json.objects("locks", locks, [&](const TaskJsonRow& row) { write_task_lock(json, row); });
  std::vector<std::pair<int32_t, std::string>> missing;
  for (const DumpTasks& process : processes) {
    for (std::string& why : missing_tasks(process)) missing.emplace_back(process.pid, std::move(why));
  }
  json.objects("missing_tasks", missing, [&](const auto& row) {
    json.integer("pid", row.first);
    json.text("why", row.second);
  });
}

}  // namespace phlox::report
