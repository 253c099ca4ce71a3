#include "phlox/view/endpoints.h"

#include <fmt/format.h>
#include <re2/re2.h>

#include <algorithm>
#include <map>
#include <set>
#include <type_traits>
#include <utility>

#include "phlox/base/text.h"
#include "phlox/profile/recorded_words.h"
#include "phlox/profile/web_routes.h"
#include "phlox/view/awaiters.h"
#include "phlox/view/dispatchers.h"
#include "phlox/view/forks.h"
#include "phlox/view/frame_labels.h"
#include "phlox/view/loop_stacks.h"
#include "phlox/view/markers.h"
#include "phlox/view/rooted_stacks.h"
#include "phlox/view/task_endpoints.h"

namespace phlox::view {

using namespace profile;

namespace {

// What is known at one frame of a stack, from its root on.
struct Place {
  const Dispatcher* by = nullptr;  // the last dispatcher
  bool looking = false;            // for what it calls
  bool wrapped = false;            // `handler` is a decorator of the program, or was called by one
  uint32_t handler = 0;            // by number
  bool not_read = false;           // frames are missing that may show a dispatcher
  bool awaits = false;             // the next function is a task's, and the ones so far await it
  uint32_t families = 0;           // of all dispatchers so far
  bool in_threads = false;         // one of them runs handlers in threads
  FrameId last;                    // the last Python function
  FrameId wrapper;                 // `wrapped`: the last decorator
  EndpointPlace part;

  bool is_likely() const { return wrapped || (by != nullptr && by->rule.likely_with != 0); }
};

}  // namespace

class FindingEndpoints {
 public:
  FindingEndpoints(const Profile& profile, const TaskRows* tasks, Endpoints& into)
      : profile_(profile),
        tasks_(tasks),
        into_(into),
        in_process_(profile.processes().size() + 1),
        of_tasks_(task_endpoints(profile)) {
    for (const Frame& frame : profile.frames()) kinds_.push_back(kind_of(frame));
    for (uint32_t id = 1; id < in_process_.size(); ++id) {
      const auto fact = profile.meta().find(fmt::format("{}{}", kDispatchersSeen, id));
      if (fact == profile.meta().end()) continue;
      const auto number = parse_number<uint32_t>(fact->second).value_or(0);
      in_process_[id] = {number / 2, number % 2 != 0};
    }
  }

  void find() {
    std::vector<Place> stacks = places_of(profile_.stacks());
    std::vector<Place> of_tasks = tasks_ != nullptr ? places_of(tasks_->stacks) : std::vector<Place>(1);
    if (!called_by_wrappers_.empty()) {
      // Once more, with what the first time has shown of the program's decorators.
      knows_wrappers_ = true;
      numbers_.clear();
      into_.endpoints_.clear();
      first_called_.clear();
      stacks = places_of(profile_.stacks());
      if (tasks_ != nullptr) of_tasks = places_of(tasks_->stacks);
    }
    each_use(stacks, of_tasks, [&](uint32_t process, const Place& place, uint32_t&) {
      in_process_[process].families |= place.families;
      in_process_[process].in_threads = in_process_[process].in_threads || place.in_threads;
    });
    into_.stacks_.assign(stacks.size(), Endpoints::kNone);
    for (const Place& place : stacks) into_.places_.push_back(place.part);
    into_.task_stacks_.assign(of_tasks.size(), Endpoints::kNone);
    each_use(stacks, of_tasks, [&](uint32_t process, const Place& place, uint32_t& endpoint) {
      if (place.handler != 0 && is_founded(process, place)) {
        endpoint = place.handler;
      } else if (place.not_read) {
        endpoint = Endpoints::kNotRead;
      }
    });
    doubt_middlewares();
    into_.in_process_ = in_process_;
  }

 private:
  enum class Kind : uint8_t { other, python, of_a_handler, dispatcher, hides_python, fork, awaits };
  using Seen = Endpoints::Seen;

  // The same for all stacks, of which there are many more than frames.
  Kind kind_of(const Frame& frame) const {
    if (frame.kind == FrameKind::python) {
      if (may_dispatch(frame)) return Kind::dispatcher;
      return of_tasks_.contains(function_of(frame)) ? Kind::of_a_handler : Kind::python;
    }
    if (is_fork_marker(frame)) return Kind::fork;
    if (is_awaits_marker(frame)) return Kind::awaits;
    return hides_python(frame) || frame.function == kBetweenSamples ? Kind::hides_python : Kind::other;
  }

  // Parents come before children; a row that claims otherwise is treated as a root.
  template <class Row>
  std::vector<Place> places_of(const std::vector<Row>& rows) {
    of_tasks_alone_ = std::is_same_v<Row, TaskStack>;
    std::vector<Place> places(rows.size() + 1);
    for (size_t i = 0; i < rows.size(); ++i) {
      const size_t parent = rows[i].parent.value <= i ? rows[i].parent.value : 0;
      places[i + 1] = places[parent];
      if (rows[i].frame && rows[i].frame.value <= profile_.frames().size())
        step(places[i + 1], rows[i].frame);
    }
    return places;
  }

  void step(Place& place, FrameId id) {
    if (place.awaits && profile_.frame(id).kind == FrameKind::python) place.part = {EndpointPart::task, id};
    switch (kinds_[id.value - 1]) {
      case Kind::other:
        return;
      case Kind::fork:
        place = Place();
        return;
      case Kind::awaits:
        place.awaits = true;
        place.looking = false;
        if (place.handler == 0) place.by = nullptr;
        return;
      case Kind::hides_python:
        place.looking = false;
        place.not_read = place.not_read || place.handler == 0;
        return;
      case Kind::python:
        if (place.looking) look(place, id);
        break;
      case Kind::of_a_handler:
        if (!begin(place, id) && place.looking) look(place, id);
        break;
      case Kind::dispatcher:
        dispatch(place, id);
        break;
    }
    place.last = id;
    place.awaits = false;
  }

  void dispatch(Place& place, FrameId id) {
    const Dispatcher* dispatcher =
        dispatcher_of(profile_.frame(id), place.last ? &profile_.frame(place.last) : nullptr);
    // One that runs anything runs it on behalf of the handler here.
    const bool is_within = place.handler != 0 || place.looking;
    if (dispatcher != nullptr && !(dispatcher->rule.likely_with != 0 && is_within)) {
      enter(place, *dispatcher);
    } else if (place.looking) {
      look(place, id);
    }
  }

  // Whether it is the outermost function of a task or a job that a handler waits for.
  bool begin(Place& place, FrameId id) {
    const TaskEndpoint& task = of_tasks_.at(function_of(profile_.frame(id)));
    const bool is_task = task.kind == Outermost::coroutine;
    const bool is_called = place.last && runs(task.kind, profile_.frame(place.last));
    if (is_called) place.part = {is_task || place.awaits ? EndpointPart::task : EndpointPart::job, id};
    // The thread pool may be a dispatcher that also calls what is no handler.
    const bool is_pool = !is_task && place.handler == 0 && place.is_likely();
    const bool is_outermost = !place.last && of_tasks_alone_ && task.is_handler;
    if ((place.by != nullptr && !is_pool) || place.not_read ||
        !(is_called || is_outermost || (place.last && place.awaits && is_task)))
      return false;
    place.by = nullptr;
    place.looking = false;
    if (task.handler) place.handler = number_of(task.handler, task.framework);
    if (task.is_handler) {
      place.part = {};
      into_.endpoints_[place.handler - 1].certain = true;
    }
    return true;
  }

  static void enter(Place& place, const Dispatcher& dispatcher) {
    place.by = &dispatcher;
    place.looking = true;
    place.wrapped = false;
    place.handler = 0;
    place.not_read = false;
    if (dispatcher.rule.likely_with == 0) place.families |= bit(dispatcher.family);
    place.in_threads = place.in_threads || dispatcher.rule.calls_them_in_threads;
  }

  void look(Place& place, FrameId id) {
    // A decorator of the program also calls functions of libraries, which are no handlers.
    const Frame& frame = profile_.frame(id);
    const bool is_help = place.handler != 0 && is_of_a_library(frame) && !is_known_between(*place.by, frame);
    const Called called = is_help ? Called::other : called_by(*place.by, frame);
    if (called == Called::between) return;
    place.looking = called == Called::wrapper;
    if (called == Called::handler && place.handler != 0 && !calls_any(profile_.frame(place.wrapper), id))
      return;
    if (called == Called::handler || called == Called::wrapper) {
      place.wrapped = place.wrapped || called == Called::wrapper;
      if (called == Called::wrapper) place.wrapper = id;
      place.handler = number_of(id, place);
    }
  }

  // Whether a decorator calls what it decorates on this line, and not a function of its own: it has called
  // several.
  bool calls_any(const Frame& wrapper, FrameId called) {
    auto& functions = called_by_wrappers_[{function_of(wrapper), wrapper.line}];
    if (!knows_wrappers_) functions.insert(function_of(profile_.frame(called)));
    return functions.size() > 1;
  }

  uint32_t number_of(FrameId id, std::string_view framework) {
    const auto [at, fresh] =
        numbers_.try_emplace(function_of(profile_.frame(id)), static_cast<uint32_t>(numbers_.size() + 1));
    if (fresh) into_.endpoints_.push_back({id, framework, false});
    return at->second;
  }

  uint32_t number_of(FrameId id, const Place& place) {
    const uint32_t number = number_of(id, place.by->framework);
    Endpoint& endpoint = into_.endpoints_[number - 1];
    endpoint.certain = endpoint.certain || !place.is_likely();
    if (!place.wrapped && may_call_a_middleware(*place.by)) first_called_.insert(number);
    return number;
  }

  bool is_founded(uint32_t process, const Place& place) const {
    const uint32_t with = place.by != nullptr ? place.by->rule.likely_with : 0;
    if (with == 0 || into_[place.handler].certain) return true;
    const Seen& seen = in_process_[process];
    return (seen.families & with) != 0 && !(seen.in_threads && place.by->family == Family::starlette);
  }

  // Calls `use` for each process and place with time, and with where its endpoint belongs.
  template <class Use>
  void each_use(const std::vector<Place>& stacks, const std::vector<Place>& of_tasks, Use&& use) {
    uint32_t unused = 0;
    const auto endpoint = [&](std::vector<uint32_t>& of, size_t id) -> uint32_t& {
      return id < of.size() ? of[id] : unused;
    };
    for (const auto* samples : {&profile_.samples(), &profile_.samples_of_others()}) {
      for (const Sample& sample : *samples) {
        if (sample.stack.value >= stacks.size()) continue;
        use(process_of(sample.thread), stacks[sample.stack.value],
            endpoint(into_.stacks_, sample.stack.value));
      }
    }
    if (tasks_ == nullptr) return;
    const auto use_task = [&](ProcessId process, TaskStackId stack) {
      if (!process || stack.value >= of_tasks.size()) return;
      use(process.value < in_process_.size() ? process.value : 0, of_tasks[stack.value],
          endpoint(into_.task_stacks_, stack.value));
    };
    const auto process_of_loop = [&](EventLoopId loop) {
      return loop && loop.value <= tasks_->loops.size() ? tasks_->loops[loop.value - 1].process : ProcessId();
    };
    for (const TaskTime& time : tasks_->times) use_task(process_of_loop(time.loop), time.stack);
    for (const TaskWaiter& row : tasks_->waiters) {
      if (!row.group || row.group.value > tasks_->groups.size()) continue;
      use_task(process_of_loop(tasks_->groups[row.group.value - 1].loop), row.stack);
    }
    for (const JobWaiter& row : tasks_->job_waiters) use_task(row.process, row.stack);
  }

  uint32_t process_of(ThreadId thread) const {
    if (!thread || thread.value > profile_.threads().size()) return 0;
    const uint32_t process = profile_.thread(thread).process.value;
    return process < in_process_.size() ? process : 0;
  }

  // A framework that calls a single function may call the program's middleware, which calls all handlers.
  void doubt_middlewares() {
    if (first_called_.size() == 1) into_.endpoints_[*first_called_.begin() - 1].certain = false;
  }

  const Profile& profile_;
  const TaskRows* tasks_;
  Endpoints& into_;
  std::vector<Kind> kinds_;  // by frame - 1
  std::vector<Seen> in_process_;
  std::map<Function, TaskEndpoint> of_tasks_;
  std::map<Function, uint32_t> numbers_;
  std::map<std::pair<Function, int32_t>, std::set<Function>> called_by_wrappers_;  // with the line
  bool knows_wrappers_ = false;
  bool of_tasks_alone_ = false;  // the stacks are of censuses: their outermost function is a task's
  std::set<uint32_t> first_called_;
};

Endpoints::Endpoints(const Profile& profile, const TaskRows* tasks, bool samples) {
  FindingEndpoints(profile, tasks, *this).find();
  if (samples && size() > 0) fetches_ = UnreadFetches(profile);
}

namespace {

std::string function_words(const Profile& profile, FrameId frame) {
  const Label label = function_label(profile, frame);
  const std::string line = label.line > 0 ? fmt::format(":{}", label.line) : "";
  return fmt::format("{} ({}{})", label.name, base_name(label.file), line);
}

}  // namespace

std::vector<std::string> endpoint_routes(const Profile& profile, const Endpoints& endpoints,
                                         uint32_t number) {
  if (number == Endpoints::kNone || number == Endpoints::kNotRead) return {};
  return routes_of(profile, profile.frame(endpoints[number].frame));
}

std::string endpoint_label(const Profile& profile, const Endpoints& endpoints, uint32_t number) {
  if (number == Endpoints::kNone) return std::string(kNoEndpoint);
  if (number == Endpoints::kNotRead) return std::string(kEndpointNotRead);
  const std::string routes = routes_words(endpoint_routes(profile, endpoints, number));
  const std::string function = function_words(profile, endpoints[number].frame);
  return routes.empty() ? function : fmt::format("{} {}", routes, function);
}

std::vector<bool> chosen_endpoints(const Profile& profile, const Endpoints& endpoints,
                                   const std::string& regex) {
  const RE2 pattern(regex, RE2::Quiet);
  std::vector<bool> chosen(endpoints.size() + 2);
  const auto matches = [&](const std::string& words) { return RE2::PartialMatch(words, pattern); };
  chosen[0] = matches(endpoint_label(profile, endpoints, Endpoints::kNone));
  for (uint32_t number = 1; number <= endpoints.size(); ++number) {
    const auto routes = endpoint_routes(profile, endpoints, number);
    chosen[number] = matches(endpoint_label(profile, endpoints, number)) ||
                     matches(function_words(profile, endpoints[number].frame)) ||
                     std::any_of(routes.begin(), routes.end(), matches);
  }
  chosen.back() = RE2::PartialMatch(endpoint_label(profile, endpoints, Endpoints::kNotRead), pattern);
  return chosen;
}

void keep_dispatchers_seen(Profile& profile, const TaskRows& tasks) {
  const Endpoints endpoints(profile, &tasks, false);
  for (uint32_t id = 1; id <= profile.processes().size(); ++id) {
    const Endpoints::Seen& seen = endpoints.seen(ProcessId(id));
    profile.emit_meta(fmt::format("{}{}", kDispatchersSeen, id),
                      std::to_string(seen.families * 2 + (seen.in_threads ? 1 : 0)));
  }
}

void show_endpoints(Profile& profile) {
  const Endpoints endpoints(profile);
  RootedStacks stacks(profile);
  std::vector<StackId> new_of(profile.stacks().size() + 1);
  std::map<uint32_t, uint32_t> roots;  // by endpoint
  const auto put = [&](const StackId stack, uint32_t endpoint) {
    if (!stack || stack.value >= new_of.size() || new_of[stack.value]) return;
    const auto [at, fresh] = roots.try_emplace(endpoint, 0);
    if (fresh) at->second = stacks.root(endpoint_label(profile, endpoints, endpoint));
    new_of[stack.value] = stacks.of(at->second, stack);
  };
  // Of samples with the same stack that was not read, some are known to be in no endpoint. These get a number
  // of their own.
  std::map<StackId, StackId> of_none;
  profile.move_samples([&](const Sample& sample) {
    if (endpoints.of(sample) != Endpoints::kNone || endpoints.of(sample.stack) == Endpoints::kNone)
      return sample.stack;
    const auto [at, fresh] = of_none.try_emplace(sample.stack, StackId());
    if (fresh) {
      const auto [root, first] = roots.try_emplace(Endpoints::kNone, 0);
      if (first) root->second = stacks.root(kNoEndpoint);
      at->second = StackId(static_cast<uint32_t>(new_of.size()));
      new_of.push_back(stacks.of(root->second, sample.stack));
    }
    return at->second;
  });
  for (const auto* samples : {&profile.samples(), &profile.samples_of_others()}) {
    for (const Sample& sample : *samples) put(sample.stack, endpoints.of(sample));
  }
  for (const Waker& waker : profile.wakers()) put(waker.stack, endpoints.of(waker.stack));
  profile.replace_stacks(stacks.take(), new_of);
}

}  // namespace phlox::view
