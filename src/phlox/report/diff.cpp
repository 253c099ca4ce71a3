#include "phlox/report/diff.h"

#include <algorithm>
#include <cmath>
#include <future>
#include <limits>
#include <map>
#include <string>
#include <tuple>
#include <utility>

#include "phlox/base/text.h"
#include "phlox/profile/recorded_words.h"
#include "phlox/report/analysis.h"
#include "phlox/report/await_error.h"
#include "phlox/report/estimate.h"
#include "phlox/view/await_time.h"
#include "phlox/view/markers.h"
#include "phlox/view/native_frames.h"
#include "phlox/view/quality.h"
#include "phlox/view/shown_event.h"
#include "phlox/view/whole_run.h"

namespace phlox::report {
namespace {

using profile::Profile;

// The totals of one recording.
struct Measured {
  const Profile* profile = nullptr;
  Analysis analysis;
  DiffSide side;
  double scale = 1;   // factor from a weight to the compared quantity
  double unseen = 0;  // weight

  Amount amount(const Share& share) const {
    return {double(share.weight) * scale, share.variance * scale * scale, analysis.step * scale,
            unseen * scale};
  }
  Amount nothing() const { return amount({}); }
};
using Sides = std::vector<Measured>;

// One function or line, in each recording.
struct Place {
  std::vector<const Entry*> before, after;
};
using FunctionKey = std::tuple<profile::FrameKind, std::string, std::string, int32_t>;

FunctionKey key_of(const Profile& profile, const Entry& entry, bool by_line) {
  const profile::Frame& frame = profile.frame(entry.frame);
  std::string name = view::function_label(profile, entry.frame).whole_name();
  const int32_t line = by_line ? entry.line - frame.first_line : 0;
  return {frame.kind, std::move(name), std::string(base_name(frame.file)), line};
}

// Without the interpreter's own C, unless `all_frames`: its time belongs to the Python above it.
std::map<FunctionKey, Place> match(const Sides& before, const Sides& after, bool by_line, bool all_frames) {
  std::map<FunctionKey, Place> places;
  for (const auto& [sides, column] : {std::pair(&before, &Place::before), std::pair(&after, &Place::after)}) {
    for (size_t run = 0; run < sides->size(); ++run) {
      const Measured& side = (*sides)[run];
      for (const Entry& entry : by_line ? side.analysis.lines : side.analysis.functions) {
        if (!all_frames && view::is_interpreter(side.profile->frame(entry.frame))) continue;
        Place& place = places[key_of(*side.profile, entry, by_line)];
        place.before.resize(before.size());
        place.after.resize(after.size());
        (place.*column)[run] = &entry;
      }
    }
  }
  return places;
}

std::vector<Amount> amounts_of(const Sides& sides, const std::vector<const Entry*>& entries,
                               Share Entry::*part) {
  std::vector<Amount> amounts;
  for (size_t run = 0; run < sides.size(); ++run)
    amounts.push_back(entries[run] != nullptr ? sides[run].amount(entries[run]->*part)
                                              : sides[run].nothing());
  return amounts;
}

Amount mean_of_runs(const std::vector<Amount>& amounts) {
  Amount mean;
  const double count = double(std::max<size_t>(1, amounts.size()));
  for (const Amount& amount : amounts) {
    mean.value += amount.value / count;
    mean.variance += amount.variance / (count * count);
    mean.step = std::max(mean.step, amount.step);
    mean.unseen += amount.unseen / count;
  }
  return mean;
}

// Weight and share as displayed: for several runs their averages, with the interval from the sampling error.
Estimate estimate_of_side(const Sides& sides, const std::vector<const Entry*>& entries, Share Entry::*part) {
  Estimate estimate;
  double weight = 0, reach = 0;
  for (size_t run = 0; run < sides.size(); ++run) {
    const Share share = entries[run] != nullptr ? entries[run]->*part : Share{};
    const double whole = double(sides[run].analysis.total) * sides[run].scale;
    weight += double(share.weight);
    estimate.share += share.share;
    const Amount amount = entries[run] != nullptr ? sides[run].amount(share) : sides[run].nothing();
    reach += whole > 0 ? reach_of(amount) / whole : 1;
  }
  const double count = double(std::max<size_t>(1, sides.size()));
  estimate.weight = std::llround(weight / count);
  estimate.share /= count;
  estimate.low = std::max(0.0, estimate.share - reach / count);
  estimate.high = std::min(1.0, estimate.share + reach / count);
  return estimate;
}

void put(Change& change, const Comparison& found) {
  change.difference = found.difference;
  change.low = found.low;
  change.high = found.high;
  change.chance = found.chance;
  change.verdict = verdict_of(found, change.before_amount, change.after_amount);
}

void put_runs(Change& change, const Runs& runs) {
  change.before_amount = mean_of_runs(runs.before);
  change.after_amount = mean_of_runs(runs.after);
  if (runs.before.size() + runs.after.size() == 2) return;
  for (const Amount& amount : runs.before) change.before_runs.push_back(amount.value);
  for (const Amount& amount : runs.after) change.after_runs.push_back(amount.value);
}

// All comparisons that are judged together, and where their results go.
class Questions {
 public:
  explicit Questions(const Margin& margin) : margin_(margin) {}

  // `always`: even if the weight is negligible.
  void ask(Change& change, Runs runs, bool always = false) {
    put_runs(change, runs);
    const bool counts =
        always || std::max(change.before_amount.value, change.after_amount.value) >= margin_.least;
    (counts ? asked_ : small_).push_back({&change, std::move(runs)});
  }
  void answer_of_recordings() {
    for (auto* list : {&asked_, &small_}) {
      for (auto& [change, runs] : *list) {
        change->error = reach_of(change->before_amount, change->after_amount, asked_.size());
        put(*change, judge_recordings(change->before_amount, change->after_amount, margin_, asked_.size()));
      }
    }
  }
  void answer_of_runs() {
    std::vector<Runs> all;
    for (const auto& [change, runs] : asked_) all.push_back(runs);
    const auto found = judge_runs(all, margin_);
    for (size_t i = 0; i < found.size(); ++i) put(*asked_[i].first, found[i]);
    // An amount too small to be judged is not reported as changed.
    for (auto& [change, runs] : small_) {
      Comparison alone = judge_runs({runs}, margin_).front();
      alone.chance = 1;
      if (alone.outcome != Outcome::same) alone.outcome = Outcome::unclear;
      put(*change, alone);
    }
  }
  void answer(Question question) {
    question == Question::recordings ? answer_of_recordings() : answer_of_runs();
  }
  size_t asked() const { return asked_.size(); }

 private:
  Margin margin_;
  std::vector<std::pair<Change*, Runs>> asked_, small_;
};

DiffRow row_of(const Place& place, const Sides& before, const Sides& after, bool by_line) {
  // Labels of the last recording that has it.
  const Profile* profile = nullptr;
  const Entry* entry = nullptr;
  for (const auto& [sides, entries] : {std::pair(&before, &place.before), std::pair(&after, &place.after)}) {
    for (size_t run = 0; run < sides->size(); ++run) {
      if ((*entries)[run] != nullptr) profile = (*sides)[run].profile, entry = (*entries)[run];
    }
  }
  const auto label = view::function_label(*profile, entry->frame);
  DiffRow row;
  row.kind = label.kind;
  row.name = label.name;
  row.full = label.whole_name();
  row.file = label.file;
  row.line = by_line ? entry->line : label.line;
  row.module = label.module;
  for (const auto& [change, part] :
       {std::pair(&row.self, &Entry::self), std::pair(&row.total, &Entry::total)}) {
    change->before = estimate_of_side(before, place.before, part);
    change->after = estimate_of_side(after, place.after, part);
  }
  return row;
}

std::vector<DiffRow> rows_of(const std::map<FunctionKey, Place>& places, const Sides& before,
                             const Sides& after, bool by_line, Questions& questions) {
  std::vector<DiffRow> rows;
  rows.reserve(places.size());  // questions keep pointers into it
  for (const auto& [key, place] : places) {
    DiffRow& row = rows.emplace_back(row_of(place, before, after, by_line));
    for (const auto& [change, part] :
         {std::pair(&row.self, &Entry::self), std::pair(&row.total, &Entry::total)}) {
      questions.ask(*change, {amounts_of(before, place.before, part), amounts_of(after, place.after, part)});
    }
  }
  return rows;
}

void sort_rows(std::vector<DiffRow>& rows) {
  auto certain = [](const DiffRow& row) {
    return is_certain(row.self.verdict) || is_certain(row.total.verdict);
  };
  auto size = [](const DiffRow& row) {
    return std::max(std::abs(row.self.difference), std::abs(row.total.difference));
  };
  std::stable_sort(rows.begin(), rows.end(), [&](const DiffRow& a, const DiffRow& b) {
    return certain(a) != certain(b) ? certain(a) : size(a) > size(b);
  });
}

std::string title_of(const Profile& profile) {
  return profile.processes().empty() ? "(empty recording)" : view::process_label(profile.processes().front());
}

bool is_whole(const Profile& profile, const view::Choices& choices) {
  if (choices.from > 0 || choices.to != std::numeric_limits<Nanoseconds>::max()) return false;
  // A test or a request, from its start to its end.
  return choices.label_regex.has_value() || choices.trace.has_value() || view::is_whole_run(profile);
}

// Of the time of threads, if await time is shown: that has no moments.
const std::vector<profile::Sample>& samples_in_time(const Profile& profile) {
  return view::shows_await_time(profile) ? profile.samples_of_others() : profile.samples();
}

// Await time is known for the whole recording only.
Result<Nanoseconds> length_of(const Profile& profile, const view::SampleFilter& filter) {
  if (!view::shows_await_time(profile)) return elapsed_of(profile.samples(), profile, filter);
  const auto whole = view::SampleFilter::make(profile, {});
  if (!whole) return fail(whole);
  return elapsed_of(profile.samples_of_others(), profile, *whole);
}

Result<Measured> measure(const Profile& profile, const profile::TaskRows* tasks,
                         const view::Choices& choices) {
  const auto filter = view::SampleFilter::make(profile, choices);
  if (!filter) return fail(filter);
  auto analysis = analyse(profile, choices, Identity::portable, tasks);
  if (!analysis) return fail(analysis);
  Measured measured;
  measured.profile = &profile;
  measured.analysis = *std::move(analysis);
  for (const Entry& entry : measured.analysis.functions) {
    if (profile.frame(entry.frame).function == profile::kBeforeItsPython)
      measured.unseen += double(entry.self.weight);
  }
  DiffSide& side = measured.side;
  side.title = title_of(profile);
  side.event = view::shown_event(profile).name;
  side.total = measured.analysis.total;
  side.samples = measured.analysis.samples;
  const auto elapsed = length_of(profile, *filter);
  if (!elapsed) return fail(elapsed);
  side.elapsed = *elapsed;
  if (tasks != nullptr && view::shows_await_time(profile)) {
    measured.unseen += census_error(profile, *tasks).unseen;
    for (const profile::TaskCensus& census : tasks->censuses) side.censuses += census.times;
  }
  for (const profile::Sample& sample : samples_in_time(profile)) {
    const auto part = filter->part_of_everything(sample);
    if (!part.passes) continue;
    side.cpu += part.cpu;
    if (sample.cpu_state == profile::CpuState::runnable) side.cpu_wait += part.wall;
  }
  side.measured = view::summarize_quality(profile);
  side.left_out = view::waiting_for_work(profile, choices);
  side.left_out_wall = side.left_out.wall();
  side.quality = view::quality_line(side.measured);
  side.warning = view::quality_warning(side.measured);
  side.whole_run = is_whole(profile, choices);
  return measured;
}

Result<Sides> measure_all(const Profiles& profiles, const std::vector<profile::TaskRows>& tasks,
                          const view::Choices& choices) {
  Sides sides;
  for (size_t i = 0; i < profiles.size(); ++i) {
    auto measured = measure(*profiles[i], i < tasks.size() ? &tasks[i] : nullptr, choices);
    if (!measured) return fail(measured);
    sides.push_back(*std::move(measured));
  }
  return sides;
}

DiffSide average(const Sides& sides) {
  DiffSide side = sides.front().side;
  side.runs = sides.size();
  const auto count = static_cast<int64_t>(sides.size());
  side.total = side.elapsed = side.cpu = side.cpu_wait = side.left_out_wall = 0;
  side.samples = side.censuses = 0;
  for (const Measured& one : sides) {
    side.total += one.side.total / count;
    side.elapsed += one.side.elapsed / count;
    side.cpu += one.side.cpu / count;
    side.cpu_wait += one.side.cpu_wait / count;
    side.left_out_wall += one.side.left_out_wall / count;
    side.samples += one.side.samples;
    side.censuses += one.side.censuses;
    side.whole_run = side.whole_run && one.side.whole_run;
    if (side.warning.empty()) side.warning = one.side.warning;
  }
  return side;
}

void choose_scale(Sides& before, Sides& after, const DiffOptions& options, Diff& diff) {
  bool whole = true, has_length = true;
  for (const Sides* sides : {&before, &after}) {
    for (const Measured& side : *sides) {
      whole = whole && side.side.whole_run;
      has_length = has_length && side.side.elapsed > 0;
    }
  }
  diff.per = options.per.value_or(whole ? Per::run : Per::second);
  if (!has_length) diff.per = Per::run;
  diff.margin.own = options.margin;
  for (Sides* sides : {&before, &after}) {
    for (Measured& side : *sides) {
      const double second = view::is_time(diff.weight) ? 1 : double(kSecond);
      side.scale = diff.per == Per::second ? second / double(side.side.elapsed) : 1;
      // With many threads, the sum of their times says nothing about the importance of one of them.
      auto all = side.side.total;
      if (diff.weight == view::Weight::wall && side.side.elapsed > 0) all = std::min(all, side.side.elapsed);
      diff.margin.least = std::max(diff.margin.least, double(all) * side.scale * options.margin / 10);
    }
  }
}

void ask_of_all(const Sides& before, const Sides& after, Diff& diff, Questions& questions) {
  Runs elapsed, cpu, whole;
  for (const auto& [sides, column] : {std::pair(&before, &Runs::before), std::pair(&after, &Runs::after)}) {
    for (const Measured& side : *sides) {
      const double time =
          view::is_time(diff.weight) || diff.per == Per::run ? side.scale : 1 / double(side.side.elapsed);
      (elapsed.*column).push_back({double(side.side.elapsed), 0, 0});
      (cpu.*column).push_back({double(side.side.cpu) * time, 0, 0});
      (whole.*column)
          .push_back({double(side.analysis.total) * side.scale,
                      side.analysis.variance * side.scale * side.scale, 0});
    }
  }
  questions.ask(diff.elapsed, std::move(elapsed), true);
  questions.ask(diff.cpu, std::move(cpu), true);
  questions.ask(diff.whole, std::move(whole), true);
}

void count(Diff& diff, size_t asked) {
  diff.compared = asked;
  for (const DiffRow& row : diff.functions) {
    bool differs = false, unclear = false;
    for (const Change* change : {&row.self, &row.total}) {
      const bool counts =
          std::max(change->before_amount.value, change->after_amount.value) >= diff.margin.least;
      differs = differs || is_certain(change->verdict);
      unclear = unclear || (counts && change->verdict == Verdict::unclear);
      if (diff.question == Question::recordings) {
        const double error = reach_of(change->before_amount, change->after_amount, 2 * diff.functions.size());
        if (counts && change->verdict == Verdict::unclear) {
          const double least = diff.margin.of(change->before_amount.value, change->after_amount.value);
          diff.seen = std::max({diff.seen, error, least});
        }
        if (!is_certain(change->verdict))
          diff.farthest = std::max(diff.farthest, std::abs(change->difference) + error);
      } else if (!is_certain(change->verdict)) {
        diff.farthest = std::max({diff.farthest, -change->low, change->high});
      }
    }
    diff.differ += differs;
    diff.unclear += unclear && !differs;
  }
}

bool in_turn(const Profiles& before, const Profiles& after) {
  auto starts = [](const Profiles& profiles) {
    std::vector<int64_t> times;
    for (const Profile* profile : profiles) {
      const auto at = profile->meta().find("start_unix_ns");
      if (at != profile->meta().end()) times.push_back(std::strtoll(at->second.c_str(), nullptr, 10));
    }
    return times;
  };
  const auto b = starts(before), a = starts(after);
  if (b.size() != before.size() || a.size() != after.size()) return true;  // not known
  const auto [b_first, b_last] = std::minmax_element(b.begin(), b.end());
  const auto [a_first, a_last] = std::minmax_element(a.begin(), a.end());
  return *b_last > *a_first && *a_last > *b_first;
}

}  // namespace

std::vector<AwaitRun> await_runs(const Profiles& profiles, const std::vector<profile::TaskRows>& tasks) {
  std::vector<AwaitRun> runs;
  for (size_t i = 0; i < std::min(profiles.size(), tasks.size()); ++i)
    runs.push_back({profiles[i], &tasks[i]});
  return runs;
}

Result<Diff> make_diff(const Profile& before, const Profile& after, const DiffOptions& options) {
  return make_diff(Profiles{&before}, Profiles{&after}, options);
}

Result<Diff> make_diff(const Profiles& before, const Profiles& after, const DiffOptions& options) {
  auto other = std::async([&] { return measure_all(before, options.tasks_before, options.choices); });
  auto after_sides = measure_all(after, options.tasks_after, options.choices);
  auto before_sides = other.get();
  if (!before_sides) return fail(before_sides);
  if (!after_sides) return fail(after_sides);

  Diff diff;
  diff.weight = options.choices.weight;
  diff.of_tasks = view::shows_await_time(*after.front());
  diff.weight_title = view::weight_title(*after.front(), diff.weight);
  diff.limit = options.limit;
  diff.show = options.choices.show;
  diff.question = before.size() + after.size() > 2 ? Question::runs : Question::recordings;
  diff.decides = diff.question == Question::recordings || can_decide(before.size(), after.size());
  diff.in_turn = diff.question == Question::recordings || in_turn(before, after);
  choose_scale(*before_sides, *after_sides, options, diff);
  diff.before = average(*before_sides);
  diff.after = average(*after_sides);

  const bool all = options.choices.all_frames;
  auto lines = std::async([&] {
    Questions questions(diff.margin);
    auto rows =
        rows_of(match(*before_sides, *after_sides, true, all), *before_sides, *after_sides, true, questions);
    questions.answer(diff.question);
    sort_rows(rows);
    return rows;
  });
  Questions questions(diff.margin);
  ask_of_all(*before_sides, *after_sides, diff, questions);
  diff.functions =
      rows_of(match(*before_sides, *after_sides, false, all), *before_sides, *after_sides, false, questions);
  questions.answer(diff.question);
  sort_rows(diff.functions);
  diff.lines = lines.get();
  count(diff, questions.asked());
  diff.awaits = await_diff(await_runs(before, options.tasks_before), await_runs(after, options.tasks_after),
                           options.margin);
  return diff;
}

}  // namespace phlox::report
