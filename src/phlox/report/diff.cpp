#include "phlox/report/diff.h"

#include <algorithm>
#include <cmath>
#include <future>
#include <limits>
#include <map>
#include <string>
#include <tuple>

#include "phlox/base/text.h"
#include "phlox/profile/quality.h"
#include "phlox/profile/sampled_events.h"
#include "phlox/report/analysis.h"
#include "phlox/report/estimate.h"

namespace phlox::report {
namespace {

using profile::Profile;

// Below this share before and after, a function is not counted among the comparisons that Bonferroni divides
// by: hundreds of functions that were looked at once or twice cannot make anybody believe in a difference.
constexpr double kCompared = 0.001;

struct Side {
  const Profile* profile;
  const Analysis* analysis;
};

// One place in the program, in either recording.
struct Pair {
  const Entry* before = nullptr;
  const Entry* after = nullptr;
};
using Key = std::tuple<profile::FrameKind, std::string, std::string, int32_t>;

Key key_of(const Profile& profile, const Entry& entry, bool by_line) {
  const profile::Frame& frame = profile.frame(entry.frame);
  std::string name = profile::function_label(profile, entry.frame).whole_name();
  const int32_t line = by_line ? entry.line - frame.first_line : 0;
  return {frame.kind, std::move(name), std::string(base_name(frame.file)), line};
}

std::map<Key, Pair> match(const Side& before, const Side& after, bool by_line) {
  std::map<Key, Pair> pairs;
  for (const Entry& entry : by_line ? before.analysis->lines : before.analysis->functions)
    pairs[key_of(*before.profile, entry, by_line)].before = &entry;
  for (const Entry& entry : by_line ? after.analysis->lines : after.analysis->functions)
    pairs[key_of(*after.profile, entry, by_line)].after = &entry;
  return pairs;
}

Change change_of(const Share* before, const Share* after, const Analysis& before_all,
                 const Analysis& after_all, double missing) {
  Share nothing_before, nothing_after;
  nothing_before.variance = unseen_variance(before_all);
  nothing_after.variance = unseen_variance(after_all);
  const Share& b = before != nullptr ? *before : nothing_before;
  const Share& a = after != nullptr ? *after : nothing_after;
  // A recording of too few looks for blocks has no blocks: then the other's.
  const uint32_t blocks = before_all.blocks == 0  ? after_all.blocks
                          : after_all.blocks == 0 ? before_all.blocks
                                                  : std::min(before_all.blocks, after_all.blocks);
  Change change;
  change.before = estimate_of(b, before_all.blocks);
  change.after = estimate_of(a, after_all.blocks);
  change.difference = a.share - b.share;
  change.error = std::sqrt(a.variance + b.variance);
  const double reach = quantile(kMissing, blocks) * change.error;
  change.low = std::max(-1.0, change.difference - reach);
  change.high = std::min(1.0, change.difference + reach);
  if (std::abs(change.difference) <= quantile(missing, blocks) * change.error) return change;
  if (b.weight == 0) {
    change.verdict = Verdict::appeared;
  } else if (a.weight == 0) {
    change.verdict = Verdict::vanished;
  } else {
    change.verdict = change.difference > 0 ? Verdict::grew : Verdict::shrank;
  }
  return change;
}

std::vector<DiffRow> compare(const Side& before, const Side& after, bool by_line) {
  const auto pairs = match(before, after, by_line);
  size_t compared = 0;
  for (const auto& [key, pair] : pairs) {
    compared += (pair.before != nullptr && pair.before->total.share >= kCompared) ||
                (pair.after != nullptr && pair.after->total.share >= kCompared);
  }
  const double missing = kMissing / double(std::max<size_t>(1, compared));
  std::vector<DiffRow> rows;
  rows.reserve(pairs.size());
  for (const auto& [key, pair] : pairs) {
    const Side& shown = pair.after != nullptr ? after : before;
    const Entry& entry = pair.after != nullptr ? *pair.after : *pair.before;
    const auto label = profile::function_label(*shown.profile, entry.frame);
    DiffRow row;
    row.kind = label.kind;
    row.name = label.name;
    row.full = label.whole_name();
    row.file = label.file;
    row.line = by_line ? entry.line : label.line;
    row.module = label.module;
    row.self = change_of(pair.before != nullptr ? &pair.before->self : nullptr,
                         pair.after != nullptr ? &pair.after->self : nullptr, *before.analysis,
                         *after.analysis, missing);
    row.total = change_of(pair.before != nullptr ? &pair.before->total : nullptr,
                          pair.after != nullptr ? &pair.after->total : nullptr, *before.analysis,
                          *after.analysis, missing);
    rows.push_back(std::move(row));
  }
  auto is_certain = [](const DiffRow& row) {
    return row.self.verdict != Verdict::noise || row.total.verdict != Verdict::noise;
  };
  auto size = [](const DiffRow& row) {
    return std::max(std::abs(row.self.difference), std::abs(row.total.difference));
  };
  std::stable_sort(rows.begin(), rows.end(), [&](const DiffRow& a, const DiffRow& b) {
    return is_certain(a) != is_certain(b) ? is_certain(a) : size(a) > size(b);
  });
  return rows;
}

std::string title_of(const Profile& profile) {
  return profile.processes().empty() ? "(empty recording)"
                                     : profile::process_label(profile.processes().front());
}

}  // namespace

Result<Diff> make_diff(const Profile& before, const Profile& after, const DiffOptions& options) {
  const auto before_filter = profile::SampleFilter::make(before, options.choices);
  if (!before_filter) return fail(before_filter);
  const auto after_filter = profile::SampleFilter::make(after, options.choices);
  if (!after_filter) return fail(after_filter);
  auto other = std::async([&] { return analyse(before, options.choices, Identity::portable); });
  const auto after_analysis = analyse(after, options.choices, Identity::portable);
  const auto before_analysis = other.get();
  if (!before_analysis) return fail(before_analysis);
  if (!after_analysis) return fail(after_analysis);

  Diff diff;
  diff.before_title = title_of(before);
  diff.after_title = title_of(after);
  diff.weight = options.choices.weight;
  diff.weight_title = profile::weight_title(after, diff.weight);
  diff.before_event = profile::shown_event(before).name;
  diff.after_event = profile::shown_event(after).name;
  diff.before_total = before_analysis->total;
  diff.after_total = after_analysis->total;
  diff.before_samples = before_analysis->samples;
  diff.after_samples = after_analysis->samples;
  diff.before_elapsed = elapsed_of(before, *before_filter);
  diff.after_elapsed = elapsed_of(after, *after_filter);
  diff.limit = options.limit;
  diff.show = options.choices.show;
  diff.before_left_out = profile::waiting_for_work(before, options.choices);
  diff.after_left_out = profile::waiting_for_work(after, options.choices);
  const Side before_side{&before, &*before_analysis}, after_side{&after, &*after_analysis};
  auto lines = std::async([&] { return compare(before_side, after_side, true); });
  diff.functions = compare(before_side, after_side, false);
  diff.lines = lines.get();
  for (const DiffRow& row : diff.functions) {
    diff.noise += row.self.verdict == Verdict::noise && row.total.verdict == Verdict::noise;
  }
  const auto before_quality = profile::summarize_quality(before),
             after_quality = profile::summarize_quality(after);
  diff.before_measured = before_quality;
  diff.after_measured = after_quality;
  diff.before_quality = profile::quality_line(before_quality);
  diff.after_quality = profile::quality_line(after_quality);
  diff.before_warning = profile::quality_warning(before_quality);
  diff.after_warning = profile::quality_warning(after_quality);
  return diff;
}

}  // namespace phlox::report
