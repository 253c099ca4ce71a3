#include "phlox/profile/work.h"

#include <fmt/format.h>
#include <tsl/robin_map.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "phlox/base/spread.h"
#include "phlox/base/text.h"
#include "phlox/profile/known_waits.h"
#include "phlox/profile/system_calls.h"

namespace phlox::profile {
namespace {

// A thread that computes less than this part of its time does nothing but wait. One look in two hundred: what
// a thread takes that wakes up to see that there is nothing to do.
constexpr double kOnlyWaits = 0.005;
// And at one place, for this part of the waiting of all such threads that wait there: who waits here and then
// there goes on from the one to the other. Of all, since a lock may be unfair to one of them. Start-up on a
// busy machine is enough to be more than kNothingElse, and eight workers that wait for one lock compute so
// little whatever else the recording has. Twenty can take turns and be seen.
constexpr double kOnePlace = 0.95;
// Where a thread waits for less than this part of its waiting, it only comes by.
constexpr double kComesBy = 0.005;
// The main thread is let off as long as no thread of its process computes this part of the recording: a
// script that sleeps beside somebody's housekeeping thread is a script that sleeps.
constexpr double kBusy = 0.10;
// Where less than this part of the recording is computed, or left to show, the waiting is the answer.
constexpr double kNothingElse = 0.02;
// A thread that computes less than this part of its time, and less than another, hands out what others do.
// Without what it waits for the GIL: those others have it.
constexpr double kHandsOut = 0.10;
// Who waits for others calls what waits within so many functions: multiprocessing's Popen.wait, its
// connection's wait, a selector.
constexpr int kAsksWithin = 2;
// What a thread does lies beneath the function that waits for work, but for how it began and what was cut.
constexpr double kBeneath = 0.9;

// Whether the sample is one of waiting at all.
bool waits(const Sample& sample) {
  return sample.cpu_state == CpuState::blocked && sample.gil_state != GilState::waits;
}

uint64_t key_of(uint32_t high, uint32_t low) {
  return uint64_t{high} << 32 | low;
}

}  // namespace

WorkRule::WorkRule(const Profile& profile, const Choices& choices, const SampleFilter& filter) {
  aarch64_ = machine_of(profile) == "aarch64";
  thread_.resize(profile.threads().size() + 1);
  for (size_t i = 0; i < profile.threads().size(); ++i) {
    const Thread& thread = profile.threads()[i];
    ThreadRow& row = thread_[i + 1];
    if (!thread.process || thread.process.value > profile.processes().size()) continue;
    row.process = thread.process.value;
    const Process& process = profile.process(thread.process);
    row.main = thread.tid != 0 && (thread.tid == process.pid || thread.tid == process.namespace_pid);
  }
  number_paths(profile);
  judge_places(profile, filter);
  judge_threads(profile, choices, filter);
}

// Paths are stacks as they matter here: of Python functions, whatever their lines and what lies between.
void WorkRule::number_paths(const Profile& profile) {
  const auto& frames = profile.frames();
  std::vector<uint32_t> function(frames.size() + 1, 0);  // of a frame; 0: not of Python
  std::vector<Wait> function_waits = {Wait::none};
  std::vector<bool> function_loops = {false}, function_locks = {false};
  std::vector<Awaits> function_awaits = {Awaits::nothing};
  {
    std::map<std::tuple<std::string_view, std::string_view, int32_t>, uint32_t> known;
    for (size_t i = 0; i < frames.size(); ++i) {
      const Frame& frame = frames[i];
      if (frame.kind != FrameKind::python) continue;
      const std::string_view name = frame.qualified_name.empty() ? frame.function : frame.qualified_name;
      const auto [at, added] = known.try_emplace({name, frame.file, frame.first_line},
                                                 static_cast<uint32_t>(function_waits.size()));
      function[i + 1] = at->second;
      if (!added) continue;
      function_waits.push_back(is_among(kEventWaits, frame)          ? Wait::event
                               : is_among(kNotificationWaits, frame) ? Wait::notification
                                                                     : Wait::none);
      function_loops.push_back(is_among(kLoops, frame));
      function_locks.push_back(is_among(kQueueLocks, frame));
      function_awaits.push_back(is_among(kWaitsForOthers, frame)     ? Awaits::others
                                : is_among(kWaitsForChildren, frame) ? Awaits::children
                                                                     : Awaits::nothing);
    }
  }
  const auto& stacks = profile.stacks();
  stack_.resize(stacks.size() + 1);
  path_parent_ = {0};
  std::vector<uint32_t> path_function = {0};
  tsl::robin_map<uint64_t, uint32_t, Spread> paths;
  for (uint32_t i = 1; i <= stacks.size(); ++i) {
    const Stack& stack = stacks[i - 1];
    StackRow& row = stack_[i];
    const uint32_t above = stack.parent.value < i ? stack_[stack.parent.value].path : 0;
    row.path = above;
    if (stack.frame && stack.frame.value < function.size() && function[stack.frame.value] != 0) {
      const auto [at, added] = paths.try_emplace(key_of(above, function[stack.frame.value]),
                                                 static_cast<uint32_t>(path_parent_.size()));
      if (added) {
        path_parent_.push_back(above);
        path_function.push_back(function[stack.frame.value]);
      }
      row.path = at->second;
    }
    uint32_t path = row.path;
    if (const uint32_t caller = path_parent_[path];
        function_locks[path_function[path]] && function_waits[path_function[caller]] != Wait::none)
      path = caller;
    // An event wait that somebody is notified of (a queue between processes) is a notification.
    for (Wait wait; (wait = function_waits[path_function[path]]) != Wait::none; path = path_parent_[path]) {
      row.wait = std::max(row.wait, wait);
      row.awaits = function_awaits[path_function[path]];
    }
    uint32_t above_it = path;
    for (int up = 0; up < kAsksWithin && row.awaits == Awaits::nothing;
         ++up, above_it = path_parent_[above_it])
      row.awaits = function_awaits[path_function[above_it]];
    row.loop = path != 0 && function_loops[path_function[path]];
    // Waits that have no function of their own are known by their system calls.
    row.asking = path;
  }
}

const WorkRule::StackRow& WorkRule::row_of(const Sample& sample) const {
  return stack_[sample.stack.value < stack_.size() ? sample.stack.value : 0];
}

bool WorkRule::waits_for_events(const Sample& sample) const {
  const Wait wait = row_of(sample).wait;
  return wait == Wait::event || (wait == Wait::none && is_call(kEventCalls, sample.system_call, aarch64_));
}

uint32_t WorkRule::asking(const Sample& sample) const {
  const StackRow& row = row_of(sample);
  switch (row.wait) {
    case Wait::event:
      return row.asking;
    case Wait::notification:
      return row.loop || may_ask_others(sample.thread) ? row.asking : 0;
    case Wait::none:
      break;
  }
  return row.loop || waits_for_events(sample) ? row.asking : 0;
}

void WorkRule::judge_places(const Profile& profile, const SampleFilter& filter) {
  // By thread and path: what is done there that is no waiting for work; where may be waited for it.
  tsl::robin_map<uint64_t, int64_t, Spread> done, waited;
  std::set<uint64_t> places;
  for (const Sample& sample : profile.samples()) {
    const auto part = filter.part_of_everything(sample);
    if (!part.passes || sample.quality == Quality::rejected) continue;
    const uint32_t asked = waits(sample) ? asking(sample) : 0;
    if (waits(sample)) {
      ThreadRow& thread = thread_[sample.thread.value];
      const uint32_t place = asked != 0 ? asked : row_of(sample).path;
      Nanoseconds& here = waited[key_of(sample.thread.value, place)];
      thread.waiting += part.wall;
      here += part.wall;
      if (here > thread.longest_waiting) {
        thread.longest_waiting = here;
        thread.place = place;
      }
    }
    if (asked != 0) {
      places.insert(key_of(sample.thread.value, asked));
    } else if (const uint32_t path = stack_[std::min<size_t>(sample.stack.value, stack_.size() - 1)].path) {
      done[key_of(sample.thread.value, path)] += part.wall;
    }
  }
  // A path comes after the one above it: from the last to the first, each adds itself there.
  std::map<uint64_t, int64_t, std::greater<>> open(done.begin(), done.end());
  std::map<uint64_t, int64_t> beneath;
  while (!open.empty()) {
    const auto [key, weight] = *open.begin();
    open.erase(open.begin());
    beneath[key] = weight;
    const auto path = static_cast<uint32_t>(key);
    if (path != 0) open[key_of(static_cast<uint32_t>(key >> 32), path_parent_[path])] += weight;
  }
  waited_.assign(waited.begin(), waited.end());
  std::set<uint32_t> loops;
  for (const StackRow& row : stack_) {
    if (row.loop) loops.insert(row.asking);
  }
  for (const uint64_t place : places) {
    const auto all = beneath.find(key_of(static_cast<uint32_t>(place >> 32), 0));
    const auto here = beneath.find(place);
    const double whole = all == beneath.end() ? 0 : double(all->second);
    const double share = here == beneath.end() ? 0 : double(here->second);
    if (share >= kBeneath * whole || loops.contains(static_cast<uint32_t>(place)))
      places_for_work_.push_back(place);
  }
}

void WorkRule::judge_threads(const Profile& profile, const Choices& choices, const SampleFilter& filter) {
  struct ProcessRow {
    Nanoseconds begin = std::numeric_limits<Nanoseconds>::max();
    Nanoseconds end = std::numeric_limits<Nanoseconds>::min();
    Nanoseconds busiest = 0, second = 0;     // what one thread computes at most, and any but that one
    Nanoseconds computing = 0, beneath = 0;  // all of it; the processes that it started, and they
    double elapsed() const { return end > begin ? double(end - begin) : 0; }
  };
  std::map<uint32_t, ProcessRow> processes;
  const bool accounted = std::any_of(profile.samples().begin(), profile.samples().end(),
                                     [](const Sample& sample) { return sample.cpu > 0; });
  for (const Sample& sample : profile.samples()) {
    const auto part = filter.part_of_everything(sample);
    if (!part.passes) continue;
    ThreadRow& thread = thread_[sample.thread.value];
    ProcessRow& process = processes[thread.process];
    process.begin = std::min(process.begin, part.start);
    process.end = std::max(process.end, part.start + part.wall);
    thread.wall += part.wall;
    // By the kernel's account, where there is one: being woken on a busy machine, or without a CPU, is not
    // computing.
    if (waits(sample)) continue;
    const bool wants_gil = sample.gil_state == GilState::waits;
    const Nanoseconds time = accounted && !wants_gil ? part.cpu : part.wall;
    thread.computing += time;
    if (!wants_gil) thread.running += time;
  }
  const auto rank = [&](uint32_t id) {
    return std::tuple(thread_[id].main, thread_[id].computing, thread_[id].wall);
  };
  Nanoseconds computing = 0;
  uint32_t lead = 0;  // a main thread, else the one that does most
  for (uint32_t i = 1; i < thread_.size(); ++i) {
    if (thread_[i].wall == 0) continue;
    ProcessRow& process = processes[thread_[i].process];
    computing += thread_[i].computing;
    process.computing += thread_[i].computing;
    process.second = std::max(process.second, std::min(process.busiest, thread_[i].computing));
    process.busiest = std::max(process.busiest, thread_[i].computing);
    if (lead == 0 || rank(i) > rank(lead)) lead = i;
  }
  for (const auto& [id, process] : processes) {
    std::optional<ProcessId> above = id == 0 ? std::nullopt : profile.process(ProcessId(id)).parent;
    // Parents come before their children.
    for (uint32_t child = id; above && above->value < child; above = profile.process(*above).parent) {
      child = above->value;
      if (const auto row = processes.find(child); row != processes.end())
        row->second.beneath += process.computing;
    }
  }
  const auto is_known = [&](const std::vector<std::string>& names, uint32_t id) {
    return !names.empty() && std::binary_search(names.begin(), names.end(), profile.threads()[id - 1].name);
  };
  // What one process waits for, another one of the recording may do: the master of a server waits for its
  // workers.
  ProcessRow all;
  for (const auto& [id, process] : processes) {
    all.begin = std::min(all.begin, process.begin);
    all.end = std::max(all.end, process.end);
    all.busiest = std::max(all.busiest, process.busiest);
  }
  const bool nothing_else = double(computing) < kNothingElse * all.elapsed();
  const Nanoseconds most_done = processes.size() > 1 ? computing : all.busiest;
  const bool nobody_is_busy = double(most_done) < kBusy * all.elapsed();
  const auto computes_little = [](const ThreadRow& thread) {
    return double(thread.computing) < kOnlyWaits * double(thread.wall);
  };
  struct Place {
    Nanoseconds here = 0, everywhere = 0;  // of the threads that wait here
  };
  std::map<uint32_t, Place> places;
  std::map<std::pair<uint32_t, uint32_t>, uint32_t> wait_longest_at;  // threads, by process and place
  for (const ThreadRow& thread : thread_) ++wait_longest_at[{thread.process, thread.place}];
  for (const auto& [key, wall] : waited_) {
    const ThreadRow& thread = thread_[key >> 32];
    if (!computes_little(thread) || double(wall) < kComesBy * double(thread.waiting)) continue;
    Place& place = places[static_cast<uint32_t>(key)];
    place.here += wall;
    place.everywhere += thread.waiting;
  }
  for (uint32_t i = 1; i < thread_.size(); ++i) {
    ThreadRow& thread = thread_[i];
    const ProcessRow& process = processes[thread.process];
    const Nanoseconds another = thread.computing == process.busiest ? process.second : process.busiest;
    const Nanoseconds others = process.computing - thread.computing + process.beneath;
    thread.others_compute = double(others) >= kBusy * process.elapsed();
    thread.children_compute = double(process.beneath) >= kOnlyWaits * process.elapsed();
    thread.hands_out = double(thread.running) < kHandsOut * double(thread.wall) && another > thread.computing;
    thread.housekeeps = thread.hands_out && wait_longest_at[{thread.process, thread.place}] == 1 &&
                        double(thread.longest_waiting) >= kOnePlace * double(thread.waiting);
    thread.asks_others = thread.main && thread.others_compute &&
                         double(thread.running) < kHandsOut * double(thread.wall) &&
                         thread.computing < others;
    const Place& place = places[thread.place];
    const bool at_one_place = double(place.here) >= kOnePlace * double(place.everywhere);
    thread.only_waits = computes_little(thread) && at_one_place && !nothing_else &&
                        !(thread.main && nobody_is_busy) && !is_known(choices.known.working, i);
  }
  Nanoseconds shown = 0;
  for (const Sample& sample : profile.samples()) {
    const auto part = filter.part_of_everything(sample);
    if (part.passes && of(sample) != Doing::waiting_for_work) shown += part.wall;
  }
  if (lead != 0 && double(shown) < kNothingElse * all.elapsed()) thread_[lead].whole = true;
  for (uint32_t i = 1; i < thread_.size(); ++i)
    thread_[i].whole = thread_[i].whole || is_known(choices.known.whole, i);
}

Doing WorkRule::of(const Sample& sample) const {
  if (!waits(sample)) return Doing::computing;
  const ThreadRow& thread = thread_[sample.thread.value];
  if (thread.whole) return Doing::waiting;
  if (thread.only_waits) return Doing::waiting_for_work;
  const StackRow& row = row_of(sample);
  if (row.path == 0 && sample.quality != Quality::rejected)
    return is_call(kPoolCalls, sample.system_call, aarch64_) ? Doing::waiting_for_work : Doing::waiting;
  if (waits_for_others(sample)) return Doing::waiting_for_work;
  const uint32_t asked = asking(sample);
  if (thread.hands_out && waits_for_events(sample)) return Doing::waiting_for_work;
  const bool for_work = asked != 0 && std::binary_search(places_for_work_.begin(), places_for_work_.end(),
                                                         key_of(sample.thread.value, asked));
  return for_work ? Doing::waiting_for_work : Doing::waiting;
}

// What it waits for, another row of the picture shows.
bool WorkRule::waits_for_others(const Sample& sample) const {
  const ThreadRow& thread = thread_[sample.thread.value];
  const StackRow& row = row_of(sample);
  if (thread.others_compute && row.awaits == Awaits::others) return true;
  if (thread.asks_others && row.wait == Wait::notification) return true;
  if (thread.housekeeps && is_call(kSleepCalls, sample.system_call, aarch64_)) return true;
  return thread.children_compute &&
         (row.awaits == Awaits::children || is_call(kChildCalls, sample.system_call, aarch64_));
}

ThreadNames WorkRule::names(const Profile& profile) const {
  std::set<std::string> working, whole;
  for (uint32_t i = 1; i < thread_.size(); ++i) {
    if (thread_[i].wall == 0 || profile.threads()[i - 1].name.empty()) continue;
    if (!thread_[i].only_waits) working.insert(profile.threads()[i - 1].name);
    if (thread_[i].whole) whole.insert(profile.threads()[i - 1].name);
  }
  return {{working.begin(), working.end()}, {whole.begin(), whole.end()}};
}

namespace {

// The frame that tells where a thread waits for work: the innermost that is not of the waiting itself, of
// Python; without Python the outermost.
FrameId telling_frame(const Profile& profile, StackId stack) {
  FrameId outermost, innermost;
  for (StackId at = stack; at && at.value <= profile.stacks().size();) {
    const Stack& row = profile.stack(at);
    if (row.frame && row.frame.value <= profile.frames().size()) {
      const Frame& frame = profile.frame(row.frame);
      if (frame.kind == FrameKind::python) {
        if (!is_among(kEventWaits, frame) && !is_among(kNotificationWaits, frame)) return row.frame;
        if (!innermost) innermost = row.frame;
      }
      outermost = row.frame;
    }
    at = row.parent < at ? row.parent : StackId();
  }
  return innermost ? innermost : outermost;
}

}  // namespace

LeftOut waiting_for_work(const Profile& profile, const Choices& choices) {
  LeftOut out;
  if (choices.show != Show::work) return out;
  const auto filter = SampleFilter::make_judging(profile, choices);
  if (!filter) return out;
  struct Sum {
    LeftOut::Place place;
    std::set<uint32_t> threads;
  };
  std::map<std::pair<std::string, std::string>, Sum> sums;
  std::map<uint32_t, Sum*> by_stack;
  std::set<uint32_t> threads, seen;
  for (const Sample& sample : profile.samples()) {
    const auto part = filter->part_of_everything(sample);
    if (!part.passes) continue;
    seen.insert(sample.thread.value);
    if (part.doing != Doing::waiting_for_work) continue;
    threads.insert(sample.thread.value);
    out.wall += part.wall;
    Sum*& sum = by_stack[sample.stack.value];
    if (sum == nullptr) {
      LeftOut::Place place;
      place.name = "code without Python frames";
      if (const FrameId frame = telling_frame(profile, sample.stack)) {
        const Label label = function_label(profile, frame);
        place.name = label.name;
        place.file = base_name(label.file);
      }
      sum = &sums.try_emplace({place.name, place.file}, Sum{place, {}}).first->second;
    }
    sum->place.wall += part.wall;
    sum->threads.insert(sample.thread.value);
  }
  out.threads = threads.size();
  out.of_threads = seen.size();
  for (auto& [key, sum] : sums) {
    sum.place.threads = sum.threads.size();
    out.places.push_back(std::move(sum.place));
  }
  std::stable_sort(out.places.begin(), out.places.end(),
                   [](const auto& a, const auto& b) { return a.wall > b.wall; });
  return out;
}

std::string left_out_words(const LeftOut& left_out) {
  constexpr size_t kNamed = 3;
  if (left_out.wall == 0) return {};
  const double seconds = double(left_out.wall) * 1e-9;
  std::string text =
      fmt::format("{:.{}f} s of waiting for something to do, in {} of {} {}:", seconds,
                  seconds < 10    ? 2
                  : seconds < 100 ? 1
                                  : 0,
                  left_out.threads, left_out.of_threads, left_out.of_threads == 1 ? "thread" : "threads");
  const size_t named = std::min(kNamed, left_out.places.size());
  for (size_t i = 0; i < named; ++i) {
    const LeftOut::Place& place = left_out.places[i];
    text += fmt::format("{} {} in {}{}", i == 0 ? "" : ",", place.threads, place.name,
                        place.file.empty() ? "" : " (" + place.file + ")");
  }
  if (named < left_out.places.size())
    text += fmt::format(" and {} more {}", left_out.places.size() - named,
                        left_out.places.size() - named == 1 ? "place" : "places");
  return text;
}

Choices choices_for_both(const Profile& before, const Profile& after, const Choices& choices) {
  Choices both = choices;
  if (choices.show != Show::work) return both;
  for (const Profile* profile : {&before, &after}) {
    Choices everything = choices;
    everything.show = Show::everything;
    const auto filter = SampleFilter::make(*profile, everything);
    if (!filter) return both;
    const ThreadNames names = WorkRule(*profile, everything, *filter).names(*profile);
    for (const auto& [from, to] :
         {std::pair(&names.working, &both.known.working), std::pair(&names.whole, &both.known.whole)}) {
      to->insert(to->end(), from->begin(), from->end());
      std::sort(to->begin(), to->end());
      to->erase(std::unique(to->begin(), to->end()), to->end());
    }
  }
  return both;
}

}  // namespace phlox::profile
