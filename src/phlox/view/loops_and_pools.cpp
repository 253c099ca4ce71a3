#include "phlox/view/loops_and_pools.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <tuple>

#include "phlox/base/text.h"
#include "phlox/view/frame_labels.h"
#include "phlox/view/loop_stacks.h"
#include "phlox/view/markers.h"
#include "phlox/view/wait_class.h"
#include "phlox/view/wait_places.h"
#include "phlox/view/work.h"

namespace phlox::view {

using namespace profile;

namespace {

// If a worker of a pool was idle for more than this part of its time, the pool had one to spare.
constexpr double kIdle = 0.005;
// A worker that was seen for a smaller part of the recording proves nothing about the whole.
constexpr double kSeen = 0.5;

class Longest {
 public:
  void add(const Profile& profile, FrameId frame, Nanoseconds wall) {
    if (!frame || frame.value > profile.frames().size()) return;
    if (profile.frame(frame).kind == FrameKind::marker) return;  // no place to name
    auto& [first, sum] = sums_.try_emplace(function_of(profile.frame(frame)), frame, 0).first->second;
    sum += wall;
  }
  std::pair<FrameId, Nanoseconds> get() const {
    std::pair<FrameId, Nanoseconds> longest;
    for (const auto& [function, sum] : sums_) {
      if (sum.second > longest.second) longest = sum;
    }
    return longest;
  }

 private:
  std::map<Function, std::pair<FrameId, Nanoseconds>> sums_;
};

struct LoopSum {
  LoopTime time;
  uint32_t kind = 0;
  Nanoseconds first = 0, last = 0;  // when it was seen
  Longest blocked;

  void add(const Profile& profile, const Sample& sample, const SampleFilter::Part& part) {
    time.wall += part.wall;
    if (sample.gil_state == GilState::waits) {
      time.gil += part.wall;
    } else if (sample.cpu_state == CpuState::runnable) {
      time.cpu += part.wall;
    } else if (sample.cpu_state == CpuState::running) {
      time.running += part.wall;
    } else if (sample.cpu_state != CpuState::blocked || part.doing == Doing::waiting_unknown) {
      time.unknown += part.wall;
    } else if (part.doing == Doing::waiting_for_work) {
      time.idle += part.wall;
    } else {
      time.blocked += part.wall;
      blocked.add(profile, asking_frame(profile, sample.stack), part.wall);
    }
  }
};

// The function that a pool's worker was given, or the program's first own function that this one called;
// none: the worker has no work.
FrameId handed_to(const Profile& profile, StackId stack, const std::vector<const KnownFunction*>& known) {
  FrameId handed, own;
  for (StackId at = stack; at && at.value <= profile.stacks().size();) {
    const Stack& row = profile.stack(at);
    if (row.frame && row.frame.value <= profile.frames().size() &&
        profile.frame(row.frame).kind == FrameKind::python) {
      const KnownFunction* function = known[row.frame.value - 1];
      if (function != nullptr && function->role == Role::pool) return own ? own : handed;
      const bool is_item = function != nullptr && function->role == Role::work;
      if (!is_item) handed = row.frame;
      if (!is_item && !is_of_a_library(profile.frame(row.frame))) own = row.frame;
    }
    at = row.parent < at ? row.parent : StackId();
  }
  return {};
}

std::string without_number(const std::string& name) {
  const size_t end = name.find_last_not_of("0123456789");
  return end == std::string::npos || end + 1 == name.size() ? name : name.substr(0, end + 1);
}

// How many calls waited for a thread of one pool. Each count holds until the next one.
class WaitingCalls {
 public:
  WaitingCalls(Nanoseconds begin, Nanoseconds end) : begin_(begin), end_(end) {}

  void count(Nanoseconds at, int64_t calls) {
    until(at);
    at_ = at;
    calls_ = calls;
  }
  // None: there are no counts for most of the time.
  std::optional<double> mean() {
    until(end_);
    if (double(known_) < kSeen * double(end_ - begin_)) return {};
    return sum_ / double(known_);
  }
  int64_t most() const { return most_; }
  int64_t least() const { return least_; }

 private:
  void until(Nanoseconds to) {
    if (!calls_) return;
    const Nanoseconds from = std::max(at_, begin_), time = std::min(to, end_) - from;
    if (time <= 0) return;
    known_ += time;
    sum_ += double(*calls_) * double(time);
    most_ = std::max(most_, *calls_);
    least_ = std::min(least_, *calls_);
  }

  Nanoseconds begin_, end_, at_ = 0, known_ = 0;
  std::optional<int64_t> calls_;  // since at_
  double sum_ = 0;
  int64_t most_ = 0, least_ = std::numeric_limits<int64_t>::max();
};

struct Worker {
  uint32_t pool = 0;
  Nanoseconds wall = 0, idle = 0, blocked = 0;
  bool known = true;  // its activity is known for all of its time
};

}  // namespace

std::vector<LoopTime> loop_times(const Profile& profile, const SampleFilter& filter) {
  const WaitPlaces& places = filter.rule().places();
  LoopStacks stacks(profile, places);
  std::map<uint32_t, LoopSum> sums;  // by thread
  for (const Sample& sample : profile.samples()) {
    const uint32_t kind = stacks.loop(sample);
    if (kind == 0 || !filter.part_of_everything(sample).passes) continue;
    const auto [at, fresh] = sums.try_emplace(sample.thread.value);
    LoopSum& sum = at->second;
    if (fresh || sample.start < sum.first) sum.first = sample.start;
    if (fresh || sample.start > sum.last) sum.last = sample.start;
    if (sum.kind == 0 || has_own_stacks(places.name(kind))) sum.kind = kind;
  }
  for (const Sample& sample : profile.samples()) {
    const auto at = sums.find(sample.thread.value);
    if (at == sums.end()) continue;
    LoopSum& sum = at->second;
    const bool is_within = sample.start >= sum.first && sample.start <= sum.last;
    const auto part = filter.part_of_everything(sample);
    // Without its stack, a wait is the loop's if the rule knows what it was for.
    const bool is_unread = is_not_read(profile, sample.stack) && part.doing != Doing::waiting_unknown;
    const bool counts =
        has_own_stacks(places.name(sum.kind)) || is_unread ? is_within : stacks.loop(sample) != 0;
    if (counts && part.passes) sum.add(profile, sample, part);
  }
  std::vector<LoopTime> rows;
  for (auto& [thread, sum] : sums) {
    if (sum.time.wall == 0) continue;
    sum.time.thread = ThreadId(thread);
    sum.time.kind = places.name(sum.kind);
    std::tie(sum.time.blocked_in, sum.time.blocked_there) = sum.blocked.get();
    rows.push_back(sum.time);
  }
  std::stable_sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) { return a.wall > b.wall; });
  return rows;
}

namespace {

// The workers of a recording, by pool.
class Pools {
 public:
  Pools(const Profile& profile, const SampleFilter& filter)
      : profile_(profile),
        filter_(filter),
        places_(filter.rule().places()),
        workers_(profile.threads().size() + 1),
        group_of_(workers_.size(), nullptr) {}

  std::vector<BusyPool> find() {
    add_up_workers();
    for (uint32_t i = 1; i < workers_.size(); ++i) put_into_group(i);
    find_what_they_ran();
    count_calls();
    std::vector<BusyPool> rows;
    for (auto& [key, group] : groups_) {
      if (is_busy(group)) rows.push_back(group.pool);
    }
    std::stable_sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) { return a.wall > b.wall; });
    return rows;
  }

 private:
  struct Group {
    BusyPool pool;
    bool never_idle = true, all_known = true;
    Longest running;
    // By the thread that represents the queue; with several queues in one group it is unknown which belongs
    // to which.
    std::map<uint32_t, WaitingCalls> calls;
  };
  // The process, the pool, the name of its threads. For processes: the one that started them.
  using Key = std::tuple<uint32_t, uint32_t, std::string>;

  void add_up_workers() {
    for (const Sample& sample : profile_.samples()) {
      const auto part = filter_.part_of_everything(sample);
      if (!part.passes) continue;
      begin_ = std::min(begin_, part.start);
      end_ = std::max(end_, part.start + part.wall);
      Worker& worker = workers_[sample.thread.value];
      // Its stack may not have been read.
      if (part.doing == Doing::waiting_unknown || part.doing == Doing::waiting_for_others)
        worker.known = false;
      const uint32_t pool = places_.of(sample.stack).pool;
      if (pool != 0) worker.pool = pool;
      // Without a stack, a wait within its work belongs to its pool, too.
      const bool is_in_work = part.doing == Doing::waiting && is_not_read(profile_, sample.stack);
      if (pool == 0 && !is_in_work) continue;
      worker.wall += part.wall;
      if (part.doing == Doing::waiting_for_work) worker.idle += part.wall;
      if (part.doing == Doing::waiting) worker.blocked += part.wall;
    }
  }

  void put_into_group(uint32_t id) {
    const Worker& worker = workers_[id];
    const Thread& thread = profile_.threads()[id - 1];
    if (worker.pool == 0 || !thread.process || thread.process.value > profile_.processes().size()) return;
    const bool is_process = is_main(profile_, thread);
    const auto parent = profile_.process(thread.process).parent;
    const Key key = is_process ? Key(parent ? parent->value : 0, worker.pool, "")
                               : Key(thread.process.value, worker.pool, without_number(thread.name));
    Group& group = groups_[key];
    group_of_[id] = &group;
    group.pool.kind = places_.name(worker.pool);
    group.pool.name = std::get<2>(key);
    group.pool.of_processes = is_process;
    ++group.pool.workers;
    group.pool.wall += worker.wall;
    group.pool.at_work += worker.wall - worker.idle;
    group.pool.blocked += worker.blocked;
    group.never_idle = group.never_idle && double(worker.idle) <= kIdle * double(worker.wall);
    group.all_known = group.all_known && worker.known && double(worker.wall) >= kSeen * double(end_ - begin_);
  }

  void find_what_they_ran() {
    std::vector<const KnownFunction*> known;
    for (const Frame& frame : profile_.frames()) known.push_back(known_function(frame));
    for (const Sample& sample : profile_.samples()) {
      const auto part = filter_.part_of_everything(sample);
      Group* group = part.passes ? group_of_[sample.thread.value] : nullptr;
      if (group == nullptr || places_.of(sample.stack).pool == 0 || part.doing == Doing::waiting_for_work)
        continue;
      group->running.add(profile_, handed_to(profile_, sample.stack, known), part.wall);
    }
  }

  // The group whose calls were counted. If no thread is given, the process has one pool of that kind.
  Group* group_of(const Event& event) {
    if (event.thread && event.thread->value < group_of_.size()) return group_of_[event.thread->value];
    Group* found = nullptr;
    for (auto& [key, group] : groups_) {
      if (!group.pool.of_processes && std::get<0>(key) == event.process->value &&
          group.pool.kind == event.text)
        found = &group;
    }
    return found;
  }

  void count_calls() {
    for (const Event& event : profile_.events()) {
      if (event.kind != EventKind::calls_waiting || !event.process) continue;
      Group* group = group_of(event);
      if (group == nullptr || group->pool.kind != event.text) continue;
      const uint32_t source = event.thread ? event.thread->value : 0;
      group->calls.try_emplace(source, begin_, end_).first->second.count(event.time, event.value);
    }
  }

  static bool is_busy(Group& group) {
    bool calls_always_waited = false;
    if (group.calls.size() == 1) {
      WaitingCalls& calls = group.calls.begin()->second;
      group.pool.calls_waiting = calls.mean();
      group.pool.most_calls_waiting = calls.most();
      calls_always_waited = group.pool.calls_waiting && calls.least() > 0;
    }
    group.pool.by_count = !(group.never_idle && group.all_known);
    std::tie(group.pool.running, group.pool.running_wall) = group.running.get();
    return group.pool.wall > 0 && (!group.pool.by_count || calls_always_waited);
  }

  const Profile& profile_;
  const SampleFilter& filter_;
  const WaitPlaces& places_;
  Nanoseconds begin_ = std::numeric_limits<Nanoseconds>::max();
  Nanoseconds end_ = std::numeric_limits<Nanoseconds>::min();
  std::vector<Worker> workers_;  // by thread
  std::map<Key, Group> groups_;
  std::vector<Group*> group_of_;  // by thread
};

}  // namespace

std::vector<BusyPool> busy_pools(const Profile& profile, const SampleFilter& filter) {
  return Pools(profile, filter).find();
}

namespace {

std::string percent(Nanoseconds part, Nanoseconds whole) {
  const double share = whole > 0 ? 100 * double(part) / double(whole) : 0;
  return share < 0.995 ? fmt::format("{:.2f} %", share) : fmt::format("{:.1f} %", share);
}

std::string place_words(const Profile& profile, FrameId frame) {
  const Label label = function_label(profile, frame);
  if (label.file.empty()) return label.name;
  return fmt::format("{} ({}:{})", label.name, base_name(label.file), label.line);
}

}  // namespace

std::string loop_words(const Profile& profile, const LoopTime& loop) {
  std::string text =
      fmt::format("idle {}, running {}", percent(loop.idle, loop.wall), percent(loop.running, loop.wall));
  if (loop.blocked > 0) text += fmt::format(", blocked in calls {}", percent(loop.blocked, loop.wall));
  if (loop.blocked > 0 && loop.blocked_in)
    text += fmt::format(" (longest in {})", place_words(profile, loop.blocked_in));
  if (loop.gil > 0) text += fmt::format(", waiting for the GIL {}", percent(loop.gil, loop.wall));
  if (loop.cpu > 0) text += fmt::format(", waiting for a CPU {}", percent(loop.cpu, loop.wall));
  if (loop.unknown > 0) text += fmt::format(", not known {}", percent(loop.unknown, loop.wall));
  return text;
}

std::string loop_sentence(const Profile& profile, const LoopTime& loop) {
  return fmt::format("The {} of {}: {}",
                     loop.kind == "native" ? "event loop" : fmt::format("{} event loop", loop.kind),
                     thread_label(profile.thread(loop.thread)), loop_words(profile, loop));
}

namespace {

std::string mean_words(const BusyPool& pool) {
  return fmt::format("{:.{}f}", *pool.calls_waiting, *pool.calls_waiting < 9.95 ? 1 : 0);
}

std::string counted_words(const Profile& profile, const BusyPool& pool) {
  std::string text = pool.workers == 1 ? fmt::format("calls waited for the one thread of {}", pool.kind)
                                       : fmt::format("calls waited for one of the {} threads of {}",
                                                     pool.workers, pool.kind);
  if (!pool.name.empty()) text += fmt::format(" ({}...)", pool.name);
  text += fmt::format(" whenever they were counted: {} on average, at most {}", mean_words(pool),
                      pool.most_calls_waiting);
  if (pool.running)
    text +=
        fmt::format("; {} spent the longest time in {}", pool.workers == 1 ? "that thread" : "these threads",
                    place_words(profile, pool.running));
  return text;
}

}  // namespace

std::string busy_pool_words(const Profile& profile, const BusyPool& pool) {
  if (pool.by_count) return counted_words(profile, pool);
  std::string text = fmt::format("{0} of {0} {1} of {2}", pool.workers,
                                 pool.of_processes ? (pool.workers == 1 ? "process" : "processes")
                                                   : (pool.workers == 1 ? "thread" : "threads"),
                                 pool.kind);
  if (!pool.name.empty()) text += fmt::format(" ({}...)", pool.name);
  text += fmt::format(" {} at work {} of the time", pool.workers == 1 ? "was" : "were",
                      percent(pool.at_work, pool.wall));
  if (pool.running)
    text += fmt::format(", {} of it in {}", percent(pool.running_wall, pool.wall),
                        place_words(profile, pool.running));
  if (pool.calls_waiting && pool.most_calls_waiting > 0)
    text += fmt::format("; {} calls waited for a thread on average, at most {}", mean_words(pool),
                        pool.most_calls_waiting);
  return text;
}

}  // namespace phlox::view
