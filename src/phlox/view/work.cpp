#include "phlox/view/work.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "phlox/base/text.h"
#include "phlox/profile/wait_target.h"
#include "phlox/view/await_time.h"
#include "phlox/view/markers.h"
#include "phlox/view/system_calls.h"
#include "phlox/view/whole_waits.h"

namespace phlox::view {

using namespace profile;

namespace {

// Pools whose threads wait for work in a lock or a semaphore (a futex), and nowhere else.
constexpr std::array<std::string_view, 6> kLockPools = {"ThreadPoolExecutor", "AnyIO",   "trio",
                                                        "waitress",           "cheroot", "dask"};

// So many waits of a thread in a system call are read that a wait that was not read is like all of them. If
// they are drawn at random, fewer than 3 % of all waits differ, at a confidence of 95 % (3/n).
constexpr uint32_t kEnoughRead = 100;

}  // namespace

WorkRule::WorkRule(const Profile& profile)
    : profile_(profile),
      places_(profile),
      threads_(profile.threads().size() + 1),
      processes_(profile.processes().size() + 1),
      aarch64_(machine_of(profile) == "aarch64") {
  for (size_t i = 0; i < profile.threads().size(); ++i) {
    const Thread& thread = profile.threads()[i];
    if (!thread.process || thread.process.value >= processes_.size()) continue;
    threads_[i + 1].process = thread.process.value;
    threads_[i + 1].main = is_main(profile, thread);
    ++processes_[thread.process.value].threads;
  }
  for (const Process& process : profile.processes()) {
    if (process.parent && process.parent->value < processes_.size())
      processes_[process.parent->value].parent = true;
  }
  for (const Sample& sample : profile.samples()) {
    const uint32_t pool = places_.of(sample.stack).pool;
    if (pool == 0 || sample.thread.value >= threads_.size() || threads_[sample.thread.value].main) continue;
    threads_[sample.thread.value].of_lock_pool =
        std::find(kLockPools.begin(), kLockPools.end(), places_.name(pool)) != kLockPools.end();
  }
  learn_calls();
}

bool WorkRule::is_unread(const Sample& sample) const {
  const Position position = places_.of(sample.stack).position;
  return position == Position::not_read ||
         (position != Position::within_work && is_not_read(profile_, sample.stack));
}

void WorkRule::learn_calls() {
  std::vector<OngoingWait> last(threads_.size());
  for (const Sample& sample : profile_.samples()) {
    if (!is_ended_wait(sample) || sample.system_call < 0 || sample.quality == Quality::rejected ||
        !sample.thread || sample.thread.value >= threads_.size() || is_unread(sample)) {
      continue;
    }
    auto& calls = threads_[sample.thread.value].calls;
    const Doing doing = of(sample);
    auto row = std::find_if(calls.begin(), calls.end(),
                            [&](const CallRow& one) { return one.system_call == sample.system_call; });
    if (row == calls.end()) row = calls.insert(row, {sample.system_call, 0, doing});
    if (!last[sample.thread.value].take(sample)) ++row->waits;
    if (row->doing != doing) row->doing = Doing::waiting_unknown;
  }
}

// A wait without its stack: the wait target may show the reason, or the thread's other waits in the same
// call.
Doing WorkRule::of_unread(const Sample& sample) const {
  if (waits_for_clients(sample)) return Doing::waiting_for_work;
  if (sample.gil_state != GilState::unknown) {
    for (const CallRow& row : threads_[sample.thread.value].calls)
      if (row.system_call == sample.system_call && row.waits >= kEnoughRead) return row.doing;
  }
  const bool is_given_work = threads_[sample.thread.value].of_lock_pool;
  if (is_given_work && sample.system_call >= 0 && !is_in(kFutexCalls, sample)) return Doing::waiting;
  return Doing::waiting_unknown;
}

Doing WorkRule::of(const Sample& sample) const {
  if (sample.system_call == kTasksAwait) return Doing::waiting;
  // A thread that waits for a CPU or for the GIL has work to do.
  if (sample.cpu_state != CpuState::blocked || sample.gil_state == GilState::waits) return Doing::computing;
  if (sample.quality == Quality::rejected || !sample.thread || sample.thread.value >= threads_.size())
    return Doing::waiting_unknown;
  if (is_unread(sample)) return of_unread(sample);
  const WaitPlace& place = places_.of(sample.stack);
  switch (place.position) {
    case Position::no_python:
      return is_in(kPoolCalls, sample) ? Doing::waiting_for_work : Doing::waiting;
    case Position::fetch:
      // A queue in a database: writing to it is work.
      return is_in(kDiskCalls, sample) ? Doing::waiting : Doing::waiting_for_work;
    case Position::nested_fetch:
      return Doing::waiting_unknown;
    case Position::native_loop:
      return is_in(kEpollCalls, sample) ? Doing::waiting_for_work : Doing::waiting;
    case Position::within_work:
      return Doing::waiting;
    case Position::root:
    case Position::elsewhere:
    case Position::not_read:
      break;
  }
  if (waits_for_clients(sample)) return Doing::waiting_for_work;
  if (place.waits == Role::waits_for_children || is_in(kChildCalls, sample)) return for_children(sample);
  if (place.waits == Role::waits_for_others) return for_others(sample);
  // If a stack was not read to its end, it is unknown what is in between.
  const bool is_whole = sample.quality == Quality::ok || sample.quality == Quality::unproved;
  return place.position == Position::root && is_whole ? at_root(sample, place) : elsewhere(sample, place);
}

// A server's socket: a program makes that call only to learn what there is to do.
bool WorkRule::waits_for_clients(const Sample& sample) const {
  if (is_in(kAcceptCalls, sample)) return true;
  return waits_for(sample, WaitTargetKind::listener);
}

bool WorkRule::waits_for(const Sample& sample, WaitTargetKind kind) const {
  return sample.wait_target && sample.wait_target.value <= profile_.wait_targets().size() &&
         profile_.wait_targets()[sample.wait_target.value - 1].kind == kind;
}

// A thread's first function is its loop, if it has one: no work item is on its stack. A main thread's first
// function is the script.
Doing WorkRule::at_root(const Sample& sample, const WaitPlace& place) const {
  if (threads_[sample.thread.value].main && !place.of_child) return elsewhere(sample, place);
  switch (place.waits) {
    case Role::waits_for_queue:
    case Role::waits_for_message:
    case Role::waits_for_events:
      return Doing::waiting_for_work;
    case Role::waits_for_condition:
      // A thread that waits for an event may have requested what sets it.
      return place.is_event ? Doing::waiting_unknown : Doing::waiting_for_work;
    default:
      break;
  }
  // A lock or a SimpleQueue, which is in C; a pause between two rounds or within a job.
  if (is_in(kFutexCalls, sample) || is_in(kSleepCalls, sample)) return Doing::waiting_unknown;
  // A pipe carries jobs, but also a child's answers.
  if (waits_for(sample, WaitTargetKind::pipe)) return Doing::waiting_unknown;
  return elsewhere(sample, place);
}

Doing WorkRule::elsewhere(const Sample& sample, const WaitPlace& place) const {
  switch (place.waits) {
    case Role::waits_for_queue:
    case Role::waits_for_condition:
      // Only another thread of the process can end that.
      if (threads_[sample.thread.value].main && !place.of_child) return for_others(sample);
      return Doing::waiting_unknown;
    case Role::waits_for_message:
    case Role::waits_for_events:
      return Doing::waiting_unknown;
    default:
      return is_in(kEpollCalls, sample) ? Doing::waiting_unknown : Doing::waiting;
  }
}

// The activity of the others is recorded, too.
Doing WorkRule::for_others(const Sample& sample) const {
  const ProcessRow& process = processes_[threads_[sample.thread.value].process];
  return process.threads > 1 || process.parent ? Doing::waiting_for_others : Doing::waiting;
}

Doing WorkRule::for_children(const Sample& sample) const {
  const uint32_t own = threads_[sample.thread.value].process;
  if (!processes_[own].parent) return Doing::waiting;
  if (!sample.wait_target || sample.wait_target.value > profile_.wait_targets().size())
    return Doing::waiting_for_others;
  const WaitTarget& wait_target = profile_.wait_targets()[sample.wait_target.value - 1];
  if (wait_target.kind != WaitTargetKind::process) return Doing::waiting_for_others;
  const bool recorded =
      std::any_of(profile_.processes().begin(), profile_.processes().end(),
                  [&](const Process& process) { return wait_target.other == std::to_string(process.pid); });
  return recorded ? Doing::waiting_for_others : Doing::waiting;
}

namespace {

// The frame that shows where a thread waits for work: the innermost Python frame that is not part of the
// waiting itself; without Python, the outermost frame. A marker: that function was not read.
FrameId telling_frame(const Profile& profile, StackId stack) {
  FrameId outermost, innermost;
  for (StackId at = stack; at && at.value <= profile.stacks().size();) {
    const Stack& row = profile.stack(at);
    if (row.frame && row.frame.value <= profile.frames().size()) {
      const Frame& frame = profile.frame(row.frame);
      if (hides_python(frame)) return row.frame;
      if (frame.kind == FrameKind::python) {
        const KnownFunction* known = known_function(frame);
        if (known == nullptr || !is_waiting(known->role)) return row.frame;
        if (!innermost) innermost = row.frame;
      }
      if (frame.kind != FrameKind::marker) outermost = row.frame;
    }
    at = row.parent < at ? row.parent : StackId();
  }
  return innermost ? innermost : outermost;
}

constexpr std::string_view kUnknownPlace = "an unknown place";

// Adds up one kind of waiting by the function that waits.
class LeftOutPlaces {
 public:
  explicit LeftOutPlaces(const Profile& profile) : profile_(profile) {}

  void add(const Sample& sample, Nanoseconds wall) {
    Sum*& sum = by_stack_[sample.stack.value];
    if (sum == nullptr) {
      WaitingAt::Place place;
      const FrameId frame = telling_frame(profile_, sample.stack);
      if (!frame) {
        place.name = "code without Python frames";
      } else if (hides_python(profile_.frame(frame)) || is_not_read(profile_, sample.stack)) {
        place.name = kUnknownPlace;
      } else {
        const Label label = function_label(profile_, frame);
        place.name = label.name;
        place.file = base_name(label.file);
      }
      sum = &sums_.try_emplace({place.name, place.file}, Sum{place, {}}).first->second;
    }
    sum->place.wall += wall;
    sum->threads.insert(sample.thread.value);
  }

  // Waits whose stacks were not read, of threads that have another place, too: they were judged by that.
  void forget_unknown_place() {
    const auto unknown = sums_.find({std::string(kUnknownPlace), ""});
    if (unknown == sums_.end()) return;
    std::set<uint32_t> elsewhere;
    for (const auto& [key, sum] : sums_)
      if (key != unknown->first) elsewhere.insert(sum.threads.begin(), sum.threads.end());
    if (!std::includes(elsewhere.begin(), elsewhere.end(), unknown->second.threads.begin(),
                       unknown->second.threads.end()))
      return;
    inferred_ += unknown->second.place.wall;
    sums_.erase(unknown);
  }

  WaitingAt all(size_t of_threads) {
    WaitingAt out;
    out.of_threads = of_threads;
    out.wall = inferred_;
    std::set<uint32_t> threads;
    for (auto& [key, sum] : sums_) {
      threads.insert(sum.threads.begin(), sum.threads.end());
      out.wall += sum.place.wall;
      sum.place.threads = sum.threads.size();
      out.places.push_back(sum.place);
    }
    out.threads = threads.size();
    std::stable_sort(out.places.begin(), out.places.end(),
                     [](const auto& a, const auto& b) { return a.wall > b.wall; });
    return out;
  }

 private:
  struct Sum {
    WaitingAt::Place place;
    std::set<uint32_t> threads;
  };
  const Profile& profile_;
  std::map<std::pair<std::string, std::string>, Sum> sums_;
  std::map<uint32_t, Sum*> by_stack_;
  Nanoseconds inferred_ = 0;
};

// "4.00 s", then "in 4 of 5 threads: 3 in worker (app.py), 1 in listen (app.py)".
std::string seconds_words(Nanoseconds wall) {
  const double seconds = double(wall) * 1e-9;
  return fmt::format("{:.{}f} s", seconds, seconds < 10 ? 2 : seconds < 100 ? 1 : 0);
}

std::string places_words(const WaitingAt& waiting) {
  constexpr size_t kNamed = 3;
  std::string text = fmt::format("in {} of {} {}:", waiting.threads, waiting.of_threads,
                                 waiting.of_threads == 1 ? "thread" : "threads");
  const size_t named = std::min(kNamed, waiting.places.size());
  for (size_t i = 0; i < named; ++i) {
    const WaitingAt::Place& place = waiting.places[i];
    text += fmt::format("{} {} in {}{}", i == 0 ? "" : ",", place.threads, place.name,
                        place.file.empty() ? "" : " (" + place.file + ")");
  }
  if (named < waiting.places.size())
    text += fmt::format(" and {} more {}", waiting.places.size() - named,
                        waiting.places.size() - named == 1 ? "place" : "places");
  return text;
}

constexpr Nanoseconds kWorthWords = kSecond / 200;  // a shorter time is "0.00 s"

}  // namespace

LeftOut waiting_for_work(const Profile& profile, const Choices& choices) {
  LeftOut out;
  if (choices.show != Show::work) return out;
  const auto filter = SampleFilter::make_judging(profile, choices);
  if (!filter) return out;
  LeftOutPlaces for_work(profile), for_others(profile), unknown(profile);
  std::set<uint32_t> seen;
  for (const Sample& sample : profile.samples()) {
    const auto part = filter->part_of_everything(sample);
    if (!part.passes) continue;
    seen.insert(sample.thread.value);
    if (part.doing == Doing::waiting_for_work) for_work.add(sample, part.wall);
    if (part.doing == Doing::waiting_for_others) for_others.add(sample, part.wall);
    if (part.doing == Doing::waiting_unknown && sample.quality != Quality::rejected)
      unknown.add(sample, part.wall);
  }
  for_work.forget_unknown_place();
  return {for_work.all(seen.size()), for_others.all(seen.size()), unknown.all(seen.size())};
}

std::string left_out_words(const LeftOut& left_out) {
  std::string text;
  for (const auto& [waiting, what] :
       {std::pair(&left_out.for_work, "for something to do"),
        std::pair(&left_out.for_others, "for other threads or processes, which are recorded, too")}) {
    if (waiting->wall < kWorthWords) continue;
    text += fmt::format("{}{} of waiting {}, {}", text.empty() ? "" : "; ", seconds_words(waiting->wall),
                        what, places_words(*waiting));
  }
  return text;
}

std::string unknown_words(const LeftOut& left_out) {
  if (left_out.unknown.wall < kWorthWords) return {};
  return fmt::format("{} {}", seconds_words(left_out.unknown.wall), places_words(left_out.unknown));
}

}  // namespace phlox::view
