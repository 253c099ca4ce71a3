#include "phlox/view/await_time.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <tuple>
#include <vector>

#include "phlox/profile/sampled_events.h"
#include "phlox/view/sample_filter.h"

namespace phlox::view {

using namespace profile;

namespace {

struct AwaitWords {
  std::string_view kind, words;
};
constexpr AwaitWords kAwaitWords[] = {
    {"future", "a future"},
    {"lost_future", "a future that nothing else refers to"},
    {"task", "another task"},
    {"gather", "tasks in gather()"},
    {"wait", "wait() or wait_for()"},
    {"task_group", "the tasks of a TaskGroup"},
    {"sleep", "the end of sleep()"},
    {"lock", "a lock"},
    {"semaphore", "a semaphore"},
    {"condition", "a condition"},
    {"event", "an event"},
    {"queue_item", "an item of a queue"},
    {"queue_room", "room in a queue"},
    {"stream_data", "data of a stream"},
    {"stream_room", "room in a stream's buffer"},
    {"concurrent_future", "a job of an executor (concurrent.futures.Future)"},
    {"subprocess", "the end of a subprocess"},
    {"server", "the end of a server"},
    {"socket", "a socket"},
    {"nursery", "the tasks of a nursery"},
    {"thread_job", "a function that runs in a thread"},
    {"object", "an object"},
};

constexpr std::string_view kUnknownThread = "of an event loop (";

class AddingAwaits {
 public:
  AddingAwaits(Profile& profile, const TaskRows& rows)
      : profile_(profile),
        rows_(rows),
        start_(recording_start(profile)),
        first_stack_(static_cast<uint32_t>(profile.stacks().size())) {}

  void add() {
    // Parents come before children in both.
    for (const TaskStack& row : rows_.stacks)
      profile_.emit(next<StackId>(profile_.stacks()), {stack(row.parent), row.frame});
    for (const TaskTime& row : rows_.times) {
      ++number_;
      if (row.state == TaskState::waiting && row.loop) put(row);
    }
    put_sampled_event(profile_, kTimeOfThreads, {"", Unit::nanoseconds});
    put_sampled_event(profile_, kTimeOfTasks, {std::string(kAwaitTime), Unit::nanoseconds});
    profile_.show_samples_of(kTimeOfThreads);
  }

 private:
  template <class IdType, class Row>
  static IdType next(const std::vector<Row>& rows) {
    return IdType(static_cast<uint32_t>(rows.size() + 1));
  }

  StackId stack(TaskStackId id) const { return id ? StackId(first_stack_ + id.value) : StackId(); }

  void put(const TaskTime& row) {
    Sample sample;
    sample.thread = thread(row.loop);
    sample.start = std::max(start_, profile_.thread(sample.thread).start);
    sample.wall = row.time;
    sample.samples = static_cast<uint32_t>(
        std::min<uint64_t>(row.seen, std::numeric_limits<decltype(sample.samples)>::max()));
    sample.stack = leaf(row);
    sample.cpu_state = CpuState::blocked;
    sample.gil_state = GilState::none;
    sample.system_call = kTasksAwait;
    sample.event = kTimeOfTasks;
    sample.value = number_;
    profile_.emit(next<SampleId>(profile_.samples()), sample);
  }

  ThreadId thread(EventLoopId id) {
    const EventLoop& loop = rows_.loops[id.value - 1];
    if (loop.thread) return loop.thread;
    const auto [at, added] = threads_.try_emplace(id, next<ThreadId>(profile_.threads()));
    if (added) {
      Thread row;
      row.process = loop.process;
      row.name = fmt::format("{}{})", kUnknownThread, loop.type);
      row.start = start_;
      profile_.emit(at->second, row);
    }
    return at->second;
  }

  StackId leaf(const TaskTime& row) {
    const auto [at, added] =
        leaves_.try_emplace({row.stack, row.kind, row.awaited}, next<StackId>(profile_.stacks()));
    if (added) profile_.emit(at->second, {stack(row.stack), frame(row)});
    return at->second;
  }

  FrameId frame(const TaskTime& row) {
    const std::string words = fmt::format("(awaits {})", awaited_by_task_words(row.kind, row.awaited));
    const auto [at, added] = frames_.try_emplace(words, next<FrameId>(profile_.frames()));
    if (added) {
      Frame marker;
      marker.kind = FrameKind::marker;
      marker.function = marker.qualified_name = words;
      profile_.emit(at->second, marker);
    }
    return at->second;
  }

  Profile& profile_;
  const TaskRows& rows_;
  Nanoseconds start_;
  uint32_t first_stack_;
  int64_t number_ = 0;  // of the row
  std::map<EventLoopId, ThreadId> threads_;
  std::map<std::tuple<TaskStackId, std::string, std::string>, StackId> leaves_;
  std::map<std::string, FrameId> frames_;
};

}  // namespace

bool add_await_time(Profile& profile, const TaskRows& rows) {
  const bool any = std::any_of(rows.times.begin(), rows.times.end(), [](const TaskTime& row) {
    return row.loop && row.state == TaskState::waiting && row.time > 0;
  });
  if (!any || !sampled_events(profile).empty()) return false;
  AddingAwaits(profile, rows).add();
  return true;
}

bool shows_await_time(const Profile& profile) {
  return !profile.samples().empty() && profile.samples().front().system_call == kTasksAwait;
}

bool is_unknown_thread_of_loop(const Thread& thread) {
  return thread.tid == 0 && thread.python_id == 0 && thread.name.starts_with(kUnknownThread);
}

std::string_view awaited_by_task(std::string_view kind) {
  for (const AwaitWords& row : kAwaitWords) {
    if (row.kind == kind) return row.words;
  }
  return kind;
}

std::string awaited_by_task_words(std::string_view kind, std::string_view awaited) {
  if (kind.empty()) return "something unknown";
  const std::string_view words = awaited_by_task(kind);
  return awaited.empty() ? std::string(words) : fmt::format("{} ({})", words, awaited);
}

}  // namespace phlox::view
