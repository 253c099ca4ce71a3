#include "phlox/view/loop_stalls.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "phlox/view/callback_functions.h"
#include "phlox/view/gil_holders.h"
#include "phlox/view/loop_stacks.h"
#include "phlox/view/loop_turns.h"
#include "phlox/view/quality.h"

namespace phlox::view {

using namespace profile;

namespace {

// While a wait grows, the kernel is asked only once in this time (KernelSource::kSilence).
constexpr Nanoseconds kGrowth = kSecond / 10;
// The longest sum of short waits (loop_turns.h) at the smallest limit.
constexpr Nanoseconds kShortSum = 2'500'000;
// The most that may be left of a turn, apart from its longest wait, if that wait counts as the turn.
constexpr double kMostLeft = 0.02;
constexpr Nanoseconds kLittle = 5'000'000;
constexpr double kChance = 0.05;

StallKind kind_of(const Sample& sample) {
  if (sample.gil_state == GilState::waits) return StallKind::gil;
  switch (sample.cpu_state) {
    case CpuState::runnable:
      return StallKind::no_cpu;
    case CpuState::running:
      return sample.collecting ? StallKind::collecting : StallKind::cpu;
    case CpuState::blocked:
      return StallKind::blocked;
    case CpuState::unknown:
      break;
  }
  return StallKind::unknown;
}

// How often something was found, at a poll more often than never.
struct OwnShare {
  int64_t own = 0, all = 0;
  double share() const { return double(own + 1) / double(all + 2); }
};
// In turns that are no stalls: how many samples found the loop in its own code, and how many found the thread
// elsewhere than the sample before did.
struct Usual {
  OwnShare own, moves;
};

// Samples in a row that found the thread in one function that the loop called, or in the loop itself.
struct Stay {
  Nanoseconds start = 0, end = 0;
  int64_t samples = 0;
  bool in_callback = false;
};

// The probability that at most `own` of `all` samples are the loop's, by chance.
double chance(int64_t own, int64_t all, double share) {
  if (double(own) >= double(all) * share) return 1;
  const double n = double(all);
  double sum = 0;
  for (int64_t i = 0; i <= own; ++i) {
    const double k = double(i);
    sum += std::exp(std::lgamma(n + 1) - std::lgamma(k + 1) - std::lgamma(n - k + 1) + k * std::log(share) +
                    (n - k) * std::log(1 - share));
  }
  return sum;
}

template <class Key>
auto most_of(const std::map<Key, Nanoseconds>& sums) {
  return std::max_element(sums.begin(), sums.end(),
                          [](const auto& a, const auto& b) { return a.second < b.second; });
}

// The common rules for all loops of a recording.
class Judge {
 public:
  Judge(const Profile& profile, const WorkRule& rule, LoopStacks& stacks, Nanoseconds shortest)
      : profile_(profile),
        shortest_(shortest),
        turns_(profile, rule, stacks),
        functions_(profile),
        start_(recording_start(profile)) {
    const QualitySummary quality = summarize_quality(profile);
    if (quality.achieved_rate > 0) interval_ = std::llround(double(kSecond) / quality.achieved_rate);
    for (const Sample& sample : profile.samples()) {
      const bool is_short = sample.cpu_state == CpuState::blocked && sample.samples == 1 && sample.wall > 0 &&
                            double(sample.wall) * kSumOfShort < double(shortest);
      if (is_short) recorded_short_.push_back(sample.start);
    }
    std::sort(recorded_short_.begin(), recorded_short_.end());
  }

  // `is_beyond`: whether the choices leave it out.
  template <class IsBeyond>
  LoopStalls of(ThreadId thread, const std::vector<uint32_t>& samples, bool own_stacks, IsBeyond is_beyond);

 private:
  const Sample& sample(const LoopSample& row) const { return profile_.samples()[row.sample]; }
  Nanoseconds end(const LoopSample& row) const { return sample(row).start + sample(row).wall; }
  Usual usual_of(const std::vector<LoopSample>& rows, const std::vector<LoopTurn>& turns, bool exact);
  std::vector<Stay> stays(const std::vector<LoopSample>& rows, const LoopTurn& turn) const;
  bool is_worth(const std::vector<LoopSample>& rows, const LoopTurn& turn, const Usual& usual);
  bool stays_long(const std::vector<LoopSample>& rows, const LoopTurn& turn, const Usual& usual) const;
  Nanoseconds longest_wait(const std::vector<LoopSample>& rows, const LoopTurn& turn) const;
  bool is_single(Nanoseconds wall, int64_t samples, Nanoseconds start) const;
  Stall stall_of(const std::vector<LoopSample>& rows, const LoopTurn& turn, bool exact);
  void put_kind(Stall& stall, const std::vector<LoopSample>& rows, const LoopTurn& turn) const;
  uint32_t longest_row(const std::vector<LoopSample>& rows, const LoopTurn& turn) const;
  Nanoseconds error_of(const std::vector<LoopSample>& rows, const LoopTurn& turn) const;
  std::pair<Nanoseconds, Nanoseconds> same_callback(const std::vector<LoopSample>& rows,
                                                    const LoopTurn& turn) const;
  Nanoseconds gap_at(const std::vector<LoopSample>& rows, const LoopTurn& turn) const;
  void put_holder(Stall& stall, const std::vector<LoopSample>& rows, const LoopTurn& turn);

  const Profile& profile_;
  Nanoseconds shortest_;
  LoopTurns turns_;
  CallbackFunctions functions_;
  std::optional<GilLines> gil_;  // made when a stall is for the GIL
  Nanoseconds start_ = 0;
  Nanoseconds interval_ = 0;  // between two samples; 0: not known
  std::vector<Nanoseconds>
      recorded_short_;  // starts of waits with their own record, short compared with a stall
};

// In whole turns that are no stalls. Time that is in no turn may be a part of a long one.
Usual Judge::usual_of(const std::vector<LoopSample>& rows, const std::vector<LoopTurn>& turns, bool exact) {
  Usual usual;
  functions_.begin();
  const auto count = [&](const LoopSample& row, bool is_own) {
    usual.own.all += sample(row).samples;
    if (is_own) usual.own.own += sample(row).samples;
  };
  for (const LoopTurn& turn : turns) {
    if (turn.is_cut || turn.end - turn.start >= shortest_) continue;
    for (size_t i = turn.first; i < turn.last; ++i) {
      if (rows[i].step != LoopStep::unread) count(rows[i], rows[i].step != LoopStep::turn);
      functions_.add_usual(rows[i]);
    }
    const std::vector<Stay> found = stays(rows, turn);
    if (found.empty()) continue;
    // The first sample follows none.
    usual.moves.own += static_cast<int64_t>(found.size()) - 1;
    for (const Stay& stay : found) usual.moves.all += stay.samples;
    --usual.moves.all;
  }
  for (const LoopSample& row : rows) {
    if (!exact && row.step == LoopStep::waits) count(row, true);
  }
  return usual;
}

std::vector<Stay> Judge::stays(const std::vector<LoopSample>& rows, const LoopTurn& turn) const {
  std::vector<Stay> found;
  std::optional<Function> last;
  for (size_t i = turn.first; i < turn.last; ++i) {
    const Sample& one = sample(rows[i]);
    if (rows[i].step == LoopStep::unread || one.samples == 0) continue;
    const bool in_callback = rows[i].step == LoopStep::turn && rows[i].place.program;
    const Function here = in_callback ? function_of(profile_.frame(rows[i].place.program)) : Function();
    if (found.empty() || here != last) found.push_back({one.start, 0, 0, in_callback});
    last = here;
    found.back().end = end(rows[i]);
    found.back().samples += one.samples;
  }
  return found;
}

// Whether the thread stayed in one function for so long that this would be unlikely in other turns: callbacks
// in a row move on. A loop whose callbacks all take long is seldom found in its own code.
bool Judge::stays_long(const std::vector<LoopSample>& rows, const LoopTurn& turn, const Usual& usual) const {
  const std::vector<Stay> found = stays(rows, turn);
  return std::any_of(found.begin(), found.end(), [&](const Stay& stay) {
    const double stays = std::pow(1 - usual.moves.share(), double(stay.samples - 1));
    return stay.in_callback && stay.samples >= kFewSamples && stay.end - stay.start >= shortest_ &&
           stays * double(found.size()) < kChance;
  });
}

// Whether this many samples in callbacks would be unlikely if these turns were like the others.
bool Judge::is_worth(const std::vector<LoopSample>& rows, const LoopTurn& turn, const Usual& usual) {
  OwnShare here;
  for (size_t i = turn.first; i < turn.last; ++i) {
    here.all += sample(rows[i]).samples;
    if (rows[i].step != LoopStep::turn) here.own += sample(rows[i]).samples;
  }
  if (here.all >= kFewSamples && chance(here.own, here.all, usual.own.share()) < kChance) return true;
  return stays_long(rows, turn, usual) || functions_.stay(rows, turn, shortest_, kChance);
}

// Whether a row this long is one wait: not a sum of short ones, and sampled no more often than it grew.
bool Judge::is_single(Nanoseconds wall, int64_t samples, Nanoseconds start) const {
  if (samples < 1 || (samples - 1) * kGrowth > wall) return false;
  if (wall >= kLongestSum) return true;
  // A shorter wait with its own record proves that the limit was low.
  const auto near = std::lower_bound(recorded_short_.begin(), recorded_short_.end(), start - kSecond);
  return near != recorded_short_.end() && *near <= start + wall + kSecond;
}

// The longest time in which the thread cannot have done anything else.
Nanoseconds Judge::longest_wait(const std::vector<LoopSample>& rows, const LoopTurn& turn) const {
  Nanoseconds longest = 0;
  for (size_t i = turn.first; i < turn.last;) {
    const Sample& first = sample(rows[i]);
    Nanoseconds wall = 0;
    int64_t samples = 0;
    size_t next = i;
    // A row ends after a second, or when the waker is known.
    for (bool ended = false; next < turn.last && !ended; ++next) {
      const Sample& one = sample(rows[next]);
      // An earlier wait for a CPU may be reported within a wait, while it grows.
      const bool is_late = one.samples == 0 && one.cpu_state == CpuState::runnable && wall > 0;
      if (is_late && one.stack == first.stack) {
        wall += one.wall;
        continue;
      }
      if (one.stack != first.stack || one.cpu_state != first.cpu_state || one.gil_state != first.gil_state ||
          one.system_call != first.system_call || (one.samples == 0) != (first.samples == 0))
        break;
      wall += one.wall;
      samples += one.samples;
      ended = bool(one.waker);
    }
    const bool in_callback = rows[std::exchange(i, next)].step == LoopStep::turn;
    if (!in_callback || wall <= longest) continue;
    const bool waits_for_gil = first.gil_state == GilState::waits && first.cpu_state == CpuState::blocked;
    const bool blocked = first.cpu_state == CpuState::blocked && first.system_call != kCallNotRecorded;
    // It wakes up now and then to request the GIL.
    if (!(waits_for_gil && samples > 0) && !(blocked && is_single(wall, samples, first.start))) continue;
    longest = wall;
  }
  return longest;
}

// The state with the largest part, and the line that took longest in that state.
void Judge::put_kind(Stall& stall, const std::vector<LoopSample>& rows, const LoopTurn& turn) const {
  std::map<StallKind, Nanoseconds> kinds;
  for (size_t i = turn.first; i < turn.last; ++i) kinds[kind_of(sample(rows[i]))] += sample(rows[i]).wall;
  const auto most = most_of(kinds);
  stall.kind = most->first;
  stall.of_kind = most->second;
  std::map<Function, Nanoseconds> functions;
  const auto each = [&](const auto& add) {
    for (size_t i = turn.first; i < turn.last; ++i) {
      if (rows[i].place.program && kind_of(sample(rows[i])) == stall.kind)
        add(rows[i].place.program, function_of(profile_.frame(rows[i].place.program)), sample(rows[i]).wall);
    }
  };
  each([&](FrameId, const Function& function, Nanoseconds wall) { functions[function] += wall; });
  if (functions.empty()) return;
  const Function function = most_of(functions)->first;
  std::map<FrameId, Nanoseconds> lines;
  each([&](FrameId frame, const Function& of, Nanoseconds wall) {
    if (of == function) lines[frame] += wall;
  });
  stall.frame = most_of(lines)->first;
}

// The thread that held the GIL for at least half of the waiting, and the line in which it did, if there is
// one.
void Judge::put_holder(Stall& stall, const std::vector<LoopSample>& rows, const LoopTurn& turn) {
  std::vector<const Sample*> waits;
  for (size_t i = turn.first; i < turn.last; ++i) {
    if (sample(rows[i]).gil_state == GilState::waits) waits.push_back(&sample(rows[i]));
  }
  if (waits.empty()) return;
  if (!gil_) gil_.emplace(profile_);
  const GilWaiter waiter = gil_->waiter(waits);
  if (waiter.threads.empty() || 2 * waiter.threads.front().wall < waiter.wall) return;
  stall.holder = waiter.threads.front().thread;
  for (const GilPlace& place : waiter.holders) {
    if (place.thread == stall.holder && 2 * place.wall >= waiter.wall) stall.holder_frame = place.frame;
  }
}

// How far the callback of its first and last sample continues beyond the turn, on the far side of short
// waits. The recording has these where there was room, with the stack of one of them: they do not prove a
// poll in between.
std::pair<Nanoseconds, Nanoseconds> Judge::same_callback(const std::vector<LoopSample>& rows,
                                                         const LoopTurn& turn) const {
  const auto is_seen = [&](size_t row) {
    return sample(rows[row]).samples > 0 && rows[row].step != LoopStep::unread;
  };
  const auto is_turn = [&](size_t row) { return is_seen(row) && rows[row].step == LoopStep::turn; };
  const auto goes_on = [&](size_t row, size_t in_turn) {
    return is_turn(row) && rows[row].place.callback == rows[in_turn].place.callback;
  };
  size_t first = turn.first, last = turn.last;
  while (first < turn.last && !is_turn(first)) ++first;
  while (last > turn.first && !is_turn(last - 1)) --last;
  if (first == turn.last) return {};
  Nanoseconds before = 0, after = 0;
  for (size_t row = turn.first; row > 0; --row) {
    if (!is_seen(row - 1)) continue;
    before = turn.start - end(rows[row - 1]);
    if (!goes_on(row - 1, first)) break;
    before = turn.start - sample(rows[row - 1]).start;
  }
  for (size_t row = turn.last; row < rows.size(); ++row) {
    if (!is_seen(row)) continue;
    after = sample(rows[row]).start - turn.end;
    if (!goes_on(row, last - 1)) break;
    after = end(rows[row]) - turn.end;
  }
  return {before, after};
}

// How far its end or its beginning may be off: a poll that only a sample found began after the sample before,
// and short waits for events are reported when their sum is long enough.
Nanoseconds Judge::error_of(const std::vector<LoopSample>& rows, const LoopTurn& turn) const {
  const auto [earlier, later] = same_callback(rows, turn);
  Nanoseconds error = 0;
  if (turn.first < turn.last && rows[turn.first].step == LoopStep::polls)
    error = sample(rows[turn.first]).wall;
  if (turn.first > 0 && sample(rows[turn.first - 1]).samples == 0) {
    size_t before = turn.first - 1;
    while (before > 0 && rows[before - 1].step != LoopStep::waits &&
           rows[before - 1].step != LoopStep::unknown && rows[before - 1].step != LoopStep::outside)
      --before;
    error += std::max(turn.start - sample(rows[before]).start, earlier);
  }
  if (turn.brief > 0) {
    size_t first = turn.first;
    while (first < turn.last && (rows[first].step != LoopStep::turn || sample(rows[first]).samples == 0))
      ++first;
    // A wait is certain from its beginning, a run at its end.
    const bool is_wait = first < turn.last && sample(rows[first]).cpu_state == CpuState::blocked;
    error += (first == turn.last ? turn.end
              : is_wait          ? sample(rows[first]).start
                                 : end(rows[first])) -
             turn.start;
  }
  if (turn.last >= rows.size()) return error;
  const Sample& next = sample(rows[turn.last]);
  if (rows[turn.last].step == LoopStep::polls) return error + std::max(next.wall, later);
  if (next.samples > 0 && next.wall >= kShortSum) return error;
  size_t last = turn.last;
  while (last > turn.first && sample(rows[last - 1]).samples == 0) --last;
  return error + std::max(turn.end - (last > turn.first ? end(rows[last - 1]) : turn.start), later);
}

// The distance of samples at its beginning or its end: on a busy host samples come late.
Nanoseconds Judge::gap_at(const std::vector<LoopSample>& rows, const LoopTurn& turn) const {
  const auto gap = [&](size_t row) {
    const Sample& one = sample(rows[row]);
    return one.samples > 0 ? one.wall / one.samples : one.wall;
  };
  size_t first = turn.first;
  while (first + 1 < turn.last && sample(rows[first]).samples == 0) ++first;
  return std::max({interval_, gap(first), turn.last < rows.size() ? gap(turn.last) : 0});
}

Stall Judge::stall_of(const std::vector<LoopSample>& rows, const LoopTurn& turn, bool exact) {
  Stall stall;
  stall.start = turn.start - start_;
  stall.wall = turn.end - turn.start;
  stall.error = exact ? error_of(rows, turn) : gap_at(rows, turn);
  stall.is_cut = turn.is_cut;
  stall.brief = turn.brief;
  put_kind(stall, rows, turn);
  if (exact) stall.least = std::min(longest_wait(rows, turn), stall.wall);
  if (stall.least < shortest_) stall.least = 0;
  if (stall.kind == StallKind::blocked) stall.sample = longest_row(rows, turn);
  if (stall.kind == StallKind::gil) put_holder(stall, rows, turn);
  std::set<Function> callbacks;
  for (size_t i = turn.first; i < turn.last; ++i) {
    if (rows[i].place.callback) callbacks.insert(function_of(profile_.frame(rows[i].place.callback)));
  }
  stall.callbacks = callbacks.size();
  return stall;
}

// The longest blocked row, as index + 1 of its sample. The reason of a wait is known when it ends.
uint32_t Judge::longest_row(const std::vector<LoopSample>& rows, const LoopTurn& turn) const {
  Nanoseconds most = -1;
  uint32_t found = 0;
  for (size_t i = turn.first; i < turn.last; ++i) {
    const Sample& one = sample(rows[i]);
    if (kind_of(one) != StallKind::blocked || one.wall <= most) continue;
    most = one.wall;
    found = rows[i].sample + 1;
  }
  return found;
}

template <class IsBeyond>
LoopStalls Judge::of(ThreadId thread, const std::vector<uint32_t>& samples, bool own_stacks,
                     IsBeyond is_beyond) {
  LoopStalls out;
  out.thread = thread;
  out.shortest = shortest_;
  const ProcessId process = profile_.thread(thread).process;
  out.exact =
      process && process.value <= profile_.processes().size() && is_in_kernel(profile_.process(process).mode);
  out.interval = out.exact ? 0 : interval_;
  if (!out.exact && interval_ == 0) return out;
  const std::vector<LoopSample> rows = turns_.rows(samples, own_stacks);
  const std::vector<LoopTurn> turns = turns_.turns(rows);
  std::vector<LoopTurn> long_ones;
  std::copy_if(turns.begin(), turns.end(), std::back_inserter(long_ones),
               [&](const LoopTurn& turn) { return turn.end - turn.start >= shortest_; });
  const Usual usual = usual_of(rows, turns, out.exact);
  for (const LoopTurn& turn : long_ones) {
    Stall stall = stall_of(rows, turn, out.exact);
    if (is_beyond(stall) || (stall.least < shortest_ && !is_worth(rows, turn, usual))) continue;
    if (stall.least >= shortest_) ++out.proved;
    out.wall += stall.wall;
    out.rows.push_back(stall);
  }
  std::stable_sort(out.rows.begin(), out.rows.end(),
                   [](const Stall& a, const Stall& b) { return a.wall > b.wall; });
  return out;
}

// The part of one thread's time that passes the choices.
struct Seen {
  std::vector<uint32_t> samples;
  Nanoseconds from = 0, to = 0;
  bool passes = false, own_stacks = false;
  Nanoseconds first = 0, last = 0;  // of the loop
};

}  // namespace

bool Stall::is_one_turn() const {
  return least > 0 && wall - least <= std::max(kLittle, Nanoseconds(double(wall) * kMostLeft));
}

std::vector<LoopStalls> loop_stalls(const Profile& profile, const SampleFilter& filter,
                                    Nanoseconds shortest) {
  const WaitPlaces& places = filter.rule().places();
  LoopStacks stacks(profile, places);
  std::map<uint32_t, Seen> threads;
  const auto& samples = profile.samples();
  for (const Sample& sample : samples) {
    const uint32_t loop = stacks.loop(sample);
    if (loop == 0 || !sample.thread || sample.thread.value > profile.threads().size()) continue;
    const auto [at, fresh] = threads.try_emplace(sample.thread.value);
    Seen& seen = at->second;
    if (fresh || sample.start < seen.first) seen.first = sample.start;
    if (fresh || sample.start > seen.last) seen.last = sample.start;
    seen.own_stacks = seen.own_stacks || has_own_stacks(places.name(loop));
  }
  if (threads.empty()) return {};
  Judge judge(profile, filter.rule(), stacks, shortest);
  for (uint32_t i = 0; i < samples.size(); ++i) {
    const auto at = threads.find(samples[i].thread.value);
    if (at == threads.end()) continue;
    Seen& seen = at->second;
    const auto part = filter.part_of_everything(samples[i]);
    if (part.passes) {
      if (!seen.passes || part.start < seen.from) seen.from = part.start;
      seen.to = std::max(seen.to, part.start + part.wall);
      seen.passes = true;
    }
    if (samples[i].start >= seen.first && samples[i].start <= seen.last) seen.samples.push_back(i);
  }
  std::vector<LoopStalls> out;
  const Nanoseconds start = recording_start(profile);
  for (auto& [thread, seen] : threads) {
    if (!seen.passes) continue;
    std::stable_sort(seen.samples.begin(), seen.samples.end(),
                     [&](uint32_t a, uint32_t b) { return samples[a].start < samples[b].start; });
    const auto is_beyond = [start, from = seen.from, to = seen.to](const Stall& stall) {
      return start + stall.start + stall.wall > to || start + stall.start < from;
    };
    out.push_back(judge.of(ThreadId(thread), seen.samples, seen.own_stacks, is_beyond));
  }
  return out;
}

}  // namespace phlox::view
