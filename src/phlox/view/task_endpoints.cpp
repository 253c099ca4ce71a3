#include "phlox/view/task_endpoints.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "phlox/base/text.h"
#include "phlox/view/dispatchers.h"
#include "phlox/view/endpoints.h"
#include "phlox/view/known_waits.h"

namespace phlox::view {

using namespace profile;

namespace {

struct Fact {
  std::string_view key;
  Outermost kind;
};
constexpr Fact kFacts[] = {{"tasks of\t", Outermost::coroutine}, {"jobs of\t", Outermost::job}};

// What stands between a pool and the function that a task waits for (python/task_job.cpp).
struct PoolFunction {
  std::string_view file, name;
};
constexpr PoolFunction kPoolFunctions[] = {
    {"/concurrent/futures/thread.py", "run"}, {"/anyio/_backends/_asyncio.py", "run"},
    {"/anyio/_backends/_trio.py", "wrapper"}, {"/trio/_core/_thread_cache.py", "_handle_job"},
    {"/trio/_threads.py", "worker_fn"},       {"/outcome/_impl.py", "capture"},
    {"/asgiref/sync.py", "thread_handler"},   {"/asgiref/sync.py", "func"},
    {"/asgiref/sync.py", "run_child"}};

std::string text_of(const Function& function) {
  const auto& [name, file, line] = function;
  return fmt::format("{}\t{}\t{}", line, name, file);
}

// The part before the next tab, which is removed with it.
std::string_view take_part(std::string_view& rest) {
  const std::string_view part = rest.substr(0, rest.find('\t'));
  rest.remove_prefix(std::min(rest.size(), part.size() + 1));
  return part;
}

std::optional<Function> function_in(std::string_view text) {
  const auto line = parse_number<int32_t>(take_part(text));
  const std::string_view name = take_part(text);
  if (!line || name.empty()) return {};
  return Function(name, text, *line);
}

// Frames of stacks of tasks.
class TaskFrames {
 public:
  TaskFrames(const Profile& profile, const TaskRows& tasks) : profile_(profile), tasks_(tasks) {}

  const Frame* frame_of(FrameId id) const {
    return id && id.value <= profile_.frames().size() ? &profile_.frame(id) : nullptr;
  }
  // The coroutine of a group's tasks.
  const Frame* coroutine_of(TaskGroupId group) const {
    return group && group.value <= tasks_.groups.size() ? frame_of(tasks_.groups[group.value - 1].frame)
                                                        : nullptr;
  }
  const Frame* innermost(TaskStackId stack) const {
    return contains(stack) ? frame_of(tasks_.stacks[stack.value - 1].frame) : nullptr;
  }
  // None: it is the outermost.
  TaskStackId parent(TaskStackId stack) const {
    if (!contains(stack)) return {};
    const TaskStackId parent = tasks_.stacks[stack.value - 1].parent;
    return parent < stack ? parent : TaskStackId();
  }
  const Frame* outermost(TaskStackId stack) const {
    while (const TaskStackId above = parent(stack)) stack = above;
    return innermost(stack);
  }

 private:
  bool contains(TaskStackId stack) const { return stack && stack.value <= tasks_.stacks.size(); }

  const Profile& profile_;
  const TaskRows& tasks_;
};

// The dispatcher whose stack this is, while it awaits the handler; null: it is none.
const TaskDispatcher* awaiting(const TaskFrames& frames, TaskStackId stack) {
  const Frame* const wait = frames.innermost(stack);
  if (wait == nullptr || wait->function != "wait_for" || !wait->file.ends_with("/asyncio/tasks.py"))
    return nullptr;
  const Frame* const caller = frames.innermost(frames.parent(stack));
  return caller != nullptr ? task_dispatcher_of(*caller) : nullptr;
}

// The facts of handlers that run as tasks of their own.
std::map<std::string, std::string> dispatched_tasks(const Profile& profile, const TaskRows& tasks) {
  struct Count {
    uint64_t seen = 0, all = 0;
    const TaskDispatcher* by = nullptr;
  };
  const TaskFrames frames(profile, tasks);
  std::map<Function, Count> counts;
  for (const TaskWaiter& row : tasks.waiters) {
    const Frame* const coroutine = frames.coroutine_of(row.group);
    if (coroutine == nullptr) continue;
    Count& count = counts[function_of(*coroutine)];
    count.all += row.seen;
    const TaskDispatcher* const by = awaiting(frames, row.stack);
    if (by == nullptr || !is_handler_of(*by, *coroutine)) continue;
    count.by = by;
    count.seen += row.seen;
  }
  std::map<std::string, std::string> facts;
  for (const auto& [function, count] : counts) {
    if (count.by == nullptr || !is_seen_enough(count.seen, count.all)) continue;
    const std::string words = text_of(function);
    facts.emplace(fmt::format("{}{}", kFacts[0].key, words),
                  fmt::format("{}\t{}", count.by->framework, words));
  }
  return facts;
}

class LearningTaskEndpoints {
 public:
  LearningTaskEndpoints(const Profile& profile, const TaskRows& tasks)
      : profile_(profile), tasks_(tasks), frames_(profile, tasks), endpoints_(profile, &tasks, false) {}

  // A task that a handler waits for may itself wait for others: each pass finds those that wait for the ones
  // of the pass before.
  std::map<Outermost, std::map<Function, uint32_t>> learn() {
    constexpr int kMostPasses = 8;
    for (int pass = 0; pass < kMostPasses; ++pass) {
      auto next = judge(count_tasks());
      if (next == known_) break;
      known_ = std::move(next);
    }
    return {{Outermost::job, judge(count_jobs())}, {Outermost::coroutine, known_}};
  }
  // Empty: of several endpoints.
  std::string handler_text(uint32_t number) const {
    if (number == Endpoints::kNone) return {};
    const Endpoint& endpoint = endpoints_[number];
    return fmt::format("{}\t{}", endpoint.framework, text_of(function_of(profile_.frame(endpoint.frame))));
  }

 private:
  using Counts = std::map<uint32_t, uint64_t>;  // by endpoint

  uint32_t endpoint_of(TaskStackId stack) const {
    if (!stack) return Endpoints::kNone;
    const uint32_t own = endpoints_.of(stack);
    if (own != Endpoints::kNone) return own;
    const Frame* const coroutine = frames_.outermost(stack);
    const auto found = coroutine != nullptr ? known_.find(function_of(*coroutine)) : known_.end();
    return found != known_.end() ? found->second : Endpoints::kNone;
  }

  std::map<Function, Counts> count_tasks() const {
    std::map<Function, Counts> counts;
    for (const TaskWaiter& row : tasks_.waiters) {
      if (const Frame* const frame = frames_.coroutine_of(row.group))
        counts[function_of(*frame)][endpoint_of(row.stack)] += row.seen;
    }
    return counts;
  }

  std::map<Function, Counts> count_jobs() const {
    std::map<Function, Counts> counts;
    for (const JobWaiter& row : tasks_.job_waiters) {
      if (const Frame* const frame = frames_.frame_of(row.frame))
        counts[function_of(*frame)][endpoint_of(row.stack)] += row.seen;
    }
    return counts;
  }

  // kNone: it belongs to several endpoints.
  static std::map<Function, uint32_t> judge(const std::map<Function, Counts>& counts) {
    std::map<Function, uint32_t> known;
    for (const auto& [function, by_endpoint] : counts) {
      uint64_t all = 0, of_endpoints = 0, endpoints = 0;
      uint32_t only = Endpoints::kNone;
      for (const auto& [endpoint, seen] : by_endpoint) {
        all += seen;
        if (endpoint == Endpoints::kNone) continue;
        ++endpoints;
        only = endpoint;
        of_endpoints += endpoint != Endpoints::kNotRead ? seen : 0;
      }
      if (!is_seen_enough(of_endpoints, all)) continue;
      known.emplace(function, endpoints == 1 ? only : Endpoints::kNone);
    }
    return known;
  }

  const Profile& profile_;
  const TaskRows& tasks_;
  TaskFrames frames_;
  Endpoints endpoints_;
  std::map<Function, uint32_t> known_;
};

}  // namespace

void learn_task_endpoints(Profile& profile, const TaskRows& tasks) {
  // Most programs have only tasks that no task waits for.
  const auto waits = [](const auto& row) { return bool(row.stack); };
  if (std::none_of(tasks.waiters.begin(), tasks.waiters.end(), waits) &&
      std::none_of(tasks.job_waiters.begin(), tasks.job_waiters.end(), waits))
    return;
  for (const auto& [key, value] : dispatched_tasks(profile, tasks)) profile.emit_meta(key, value);
  LearningTaskEndpoints learning(profile, tasks);
  std::vector<std::pair<std::string, std::string>> facts;
  const auto learnt = learning.learn();
  for (const Fact& fact : kFacts) {
    for (const auto& [function, number] : learnt.at(fact.kind))
      facts.emplace_back(fmt::format("{}{}", fact.key, text_of(function)), learning.handler_text(number));
  }
  for (const auto& [key, value] : facts) profile.emit_meta(key, value);
}

std::map<Function, TaskEndpoint> task_endpoints(const Profile& profile) {
  std::map<Function, TaskEndpoint> found;
  std::map<Function, FrameId> frames;
  for (const auto& [key, kind] : kFacts) {
    for (auto fact = profile.meta().lower_bound(key);
         fact != profile.meta().end() && fact->first.starts_with(key); ++fact) {
      if (frames.empty()) {
        for (uint32_t i = 1; i <= profile.frames().size(); ++i)
          frames.try_emplace(function_of(profile.frame(FrameId(i))), FrameId(i));
      }
      std::string_view value = fact->second;
      const std::string_view framework = framework_named(take_part(value));
      const auto outermost = function_in(std::string_view(fact->first).substr(key.size()));
      const auto handler = function_in(value);
      const auto frame = handler ? frames.find(*handler) : frames.end();
      if (!outermost) continue;
      if (fact->second.empty()) {
        found.emplace(*outermost, TaskEndpoint{{}, {}, kind});
      } else if (!framework.empty() && frame != frames.end()) {
        found.emplace(*outermost, TaskEndpoint{frame->second, framework, kind, *handler == *outermost});
      }
    }
  }
  return found;
}

bool runs(Outermost kind, const Frame& frame) {
  if (frame.kind != FrameKind::python) return false;
  if (kind == Outermost::job) {
    return std::any_of(std::begin(kPoolFunctions), std::end(kPoolFunctions), [&](const PoolFunction& one) {
      return frame.function == one.name && frame.file.ends_with(one.file);
    });
  }
  const KnownFunction* const known = known_function(frame);
  if (is_loop(known) || is_handle(known)) return true;
  // Task.__step() of tasks written in Python.
  return frame.file.ends_with("/asyncio/tasks.py") && frame.function.starts_with("__step");
}

}  // namespace phlox::view
