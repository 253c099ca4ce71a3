#include "phlox/view/gil_holders.h"

#include <tsl/robin_map.h>

#include <algorithm>
#include <limits>
#include <map>
#include <queue>
#include <utility>

#include "phlox/base/spread.h"
#include "phlox/view/markers.h"

namespace phlox::view {

using namespace profile;

namespace {

constexpr Nanoseconds kNever = std::numeric_limits<Nanoseconds>::max();

struct Hold {
  Nanoseconds start = 0, end = 0;
  uint32_t place = 0;
};

// The places at which threads hold the GIL of one interpreter, numbered from 0.
class Places {
 public:
  uint32_t number(ThreadId thread, FrameId frame) {
    const auto [at, fresh] =
        known_.try_emplace(uint64_t{thread.value} << 32 | frame.value, static_cast<uint32_t>(places_.size()));
    if (fresh) places_.push_back({thread, frame, 0});
    return at->second;
  }
  const GilPlace& operator[](uint32_t number) const { return places_[number]; }
  size_t size() const { return places_.size(); }

 private:
  tsl::robin_map<uint64_t, uint32_t, Spread> known_;
  std::vector<GilPlace> places_;
};

// A span is certain only at its end, where the thread was sampled. If several threads claim the GIL, it was
// held by the one that was sampled first from there on; the others had it later. Returns ordered spans that
// do not overlap.
std::vector<Hold> one_after_another(std::vector<Hold> holds) {
  std::sort(holds.begin(), holds.end(), [](const Hold& a, const Hold& b) {
    return a.start != b.start ? a.start < b.start : a.end < b.end;
  });
  const auto ends_later = [](const Hold& a, const Hold& b) { return a.end > b.end; };
  std::priority_queue<Hold, std::vector<Hold>, decltype(ends_later)> open(ends_later);
  std::vector<Hold> line;
  Nanoseconds now = 0;
  for (size_t next = 0; next < holds.size() || !open.empty();) {
    if (open.empty()) now = holds[next].start;
    while (next < holds.size() && holds[next].start <= now) open.push(holds[next++]);
    while (!open.empty() && open.top().end <= now) open.pop();
    if (open.empty()) continue;
    const Hold& first = open.top();
    const Nanoseconds until = std::min(first.end, next < holds.size() ? holds[next].start : kNever);
    if (!line.empty() && line.back().end == now && line.back().place == first.place) {
      line.back().end = until;
    } else {
      line.push_back({now, until, first.place});
    }
    now = until;
  }
  return line;
}

struct Interpreter {
  std::vector<Hold> holds;
  Places places;
};

struct Wait {
  Nanoseconds start = 0, end = 0;
  FrameId frame;
  bool queued = false;  // for a CPU
};

std::vector<GilPlace> longest_first(std::vector<GilPlace> places) {
  std::sort(places.begin(), places.end(), [](const GilPlace& a, const GilPlace& b) {
    return std::tuple(-a.wall, a.thread, a.frame) < std::tuple(-b.wall, b.thread, b.frame);
  });
  return places;
}

// `held`: scratch space by place; zeros before and after the call.
GilWaiter waiter_of(ThreadId thread, const std::vector<Wait>& waits, const Interpreter& of,
                    std::vector<Nanoseconds>& held) {
  GilWaiter waiter;
  waiter.thread = thread;
  std::map<FrameId, Nanoseconds> places;
  std::vector<uint32_t> met;
  for (const Wait& wait : waits) {
    Nanoseconds unseen = wait.end - wait.start;
    waiter.wall += unseen;
    places[wait.frame] += unseen;
    auto hold = std::upper_bound(of.holds.begin(), of.holds.end(), wait.start,
                                 [](Nanoseconds start, const Hold& one) { return start < one.end; });
    for (; hold != of.holds.end() && hold->start < wait.end; ++hold) {
      if (of.places[hold->place].thread == thread) continue;
      const Nanoseconds both = std::min(wait.end, hold->end) - std::max(wait.start, hold->start);
      if (held[hold->place] == 0) met.push_back(hold->place);
      held[hold->place] += both;
      unseen -= both;
    }
    waiter.unseen += unseen;
    if (wait.queued) waiter.free += unseen;
  }
  std::map<ThreadId, Nanoseconds> threads;
  for (const uint32_t place : met) {
    waiter.holders.push_back({of.places[place].thread, of.places[place].frame, held[place]});
    threads[of.places[place].thread] += std::exchange(held[place], 0);
  }
  for (const auto& [frame, wall] : places) waiter.places.push_back({thread, frame, wall});
  for (const auto& [holder, wall] : threads) waiter.threads.push_back({holder, {}, wall});
  waiter.places = longest_first(std::move(waiter.places));
  waiter.holders = longest_first(std::move(waiter.holders));
  waiter.threads = longest_first(std::move(waiter.threads));
  return waiter;
}

// A process, and its interpreter.
using Key = std::pair<uint32_t, int64_t>;
using Interpreters = std::map<Key, Interpreter>;

Key key_of(const Profile& profile, ThreadId id) {
  const Thread& thread = profile.thread(id);
  return {thread.process.value, thread.interpreter};
}

// Builds the lines of those interpreters that exist.
void lay(const Profile& profile, Interpreters& interpreters) {
  for (const Sample& sample : profile.samples()) {
    if (sample.gil_state != GilState::holds || sample.wall <= 0 || !sample.thread ||
        sample.thread.value > profile.threads().size())
      continue;
    const auto found = interpreters.find(key_of(profile, sample.thread));
    if (found == interpreters.end()) continue;
    Interpreter& of = found->second;
    of.holds.push_back({sample.start, sample.start + sample.wall,
                        of.places.number(sample.thread, innermost_python(profile, sample.stack))});
  }
  for (auto& [key, of] : interpreters) of.holds = one_after_another(std::move(of.holds));
}

Wait wait_of(const Profile& profile, const Sample& sample, Nanoseconds start, Nanoseconds wall) {
  return {start, start + wall, innermost_python(profile, sample.stack),
          sample.cpu_state == CpuState::runnable};
}

}  // namespace

FrameId innermost_python(const Profile& profile, StackId stack) {
  FrameId innermost;
  for (StackId at = stack; at && at.value <= profile.stacks().size();) {
    const Stack& row = profile.stack(at);
    if (row.frame && row.frame.value <= profile.frames().size()) {
      const Frame& frame = profile.frame(row.frame);
      if (frame.kind == FrameKind::python || hides_python(frame)) return row.frame;
      if (!innermost) innermost = row.frame;
    }
    at = row.parent < at ? row.parent : StackId();
  }
  return innermost;
}

std::vector<GilWaiter> gil_waiters(const Profile& profile, const SampleFilter& filter) {
  // The holders during a wait do not depend on what is shown.
  Interpreters interpreters;
  std::map<ThreadId, std::vector<Wait>> waits;
  for (const Sample& sample : profile.samples()) {
    if (sample.gil_state != GilState::waits || !sample.thread) continue;
    const auto part = filter.part_of_everything(sample);
    if (!part.passes || part.wall == 0) continue;
    waits[sample.thread].push_back(wait_of(profile, sample, part.start, part.wall));
    interpreters.try_emplace(key_of(profile, sample.thread));
  }
  lay(profile, interpreters);
  std::vector<GilWaiter> waiters;
  std::vector<Nanoseconds> held;
  for (const auto& [thread, all] : waits) {
    const Interpreter& of = interpreters.at(key_of(profile, thread));
    if (held.size() < of.places.size()) held.resize(of.places.size());
    waiters.push_back(waiter_of(thread, all, of, held));
  }
  std::stable_sort(waiters.begin(), waiters.end(),
                   [](const GilWaiter& a, const GilWaiter& b) { return a.wall > b.wall; });
  return waiters;
}

struct GilLines::State {
  Interpreters interpreters;
  std::vector<Nanoseconds> held;
};

GilLines::GilLines(const Profile& profile) : profile_(profile), state_(std::make_unique<State>()) {
  for (size_t i = 0; i < profile.threads().size(); ++i)
    state_->interpreters.try_emplace(key_of(profile, ThreadId(static_cast<uint32_t>(i + 1))));
  lay(profile, state_->interpreters);
}

GilLines::~GilLines() = default;

GilWaiter GilLines::waiter(const std::vector<const Sample*>& waits) {
  const ThreadId thread = waits.front()->thread;
  std::vector<Wait> all;
  for (const Sample* wait : waits) all.push_back(wait_of(profile_, *wait, wait->start, wait->wall));
  const Interpreter& of = state_->interpreters.at(key_of(profile_, thread));
  if (state_->held.size() < of.places.size()) state_->held.resize(of.places.size());
  return waiter_of(thread, all, of, state_->held);
}

}  // namespace phlox::view
