#include "phlox/view/quality.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "phlox/profile/counters.h"
#include "phlox/profile/unfinished.h"

namespace phlox::view {

using namespace profile;

namespace {

constexpr std::string_view kRejected = "rejected_";  // prefix of each name
constexpr std::pair<std::string_view, std::string_view> kReasons[] = {
    {counters::kRejectedMoved, "moved while read"},
    {counters::kRejectedUnreadable, "unreadable memory"},
    {counters::kRejectedBroken, "broken chain"},
};

std::string grouped(int64_t value) {
  std::string digits = fmt::format("{}", value);
  for (auto at = static_cast<int64_t>(digits.size()) - 3; at > (value < 0 ? 1 : 0); at -= 3) {
    digits.insert(static_cast<size_t>(at), ",");
  }
  return digits;
}

// Two significant digits below 10 %, one decimal above: an overhead of 0.02 % should not read as 0.0 %.
std::string percent(double share) {
  double value = share * 100;
  if (value == 0) return "0 %";
  if (value < 0.01) return "< 0.01 %";
  return value < 10 ? fmt::format("{:.2g} %", value) : fmt::format("{:.1f} %", value);
}

std::string rate(double per_second) {
  return per_second < 100 ? fmt::format("{:.1f}", per_second) : fmt::format("{:.0f}", per_second);
}

// The maximum over processes, for values that are no sums.
int64_t greatest(const Profile& profile, std::string_view name) {
  int64_t value = 0;
  for (const Counter& row : profile.counters()) {
    if (row.name == name) value = std::max(value, row.value);
  }
  return value;
}

// How long processes were recorded, added up. None: not known.
std::optional<Nanoseconds> sampled_time(const Profile& profile) {
  // A process without an end was recorded until the last row (the recording grows, or was truncated).
  const Nanoseconds until = is_unfinished(profile) ? seen_until(profile) : 0;
  Nanoseconds sampled = 0;
  for (const Process& process : profile.processes()) {
    const Nanoseconds end = process.end != 0 ? process.end : until;
    if (end <= process.start) return {};
    sampled += end - process.start;
  }
  return sampled > 0 ? std::optional(sampled) : std::nullopt;
}

// For recordings of other tools, whose mode and cost are not known.
std::string foreign_quality_line(const QualitySummary& quality) {
  std::string line = grouped(quality.samples) + " samples, recorded by " + quality.recorded_by;
  if (quality.lost > 0) line += ", " + grouped(quality.lost) + " lost";
  if (quality.cut > 0) line += ", " + grouped(quality.cut) + " cut";
  if (quality.native > 0) {
    line += "; " + percent(double(quality.native_whole) / double(quality.native)) + " of " +
            grouped(quality.native) + " dumped stacks whole";
  }
  return line;
}

}  // namespace

QualitySummary summarize_quality(const Profile& profile) {
  QualitySummary quality;
  quality.samples = profile.counter(counters::kSamples);
  quality.missed = profile.counter(counters::kTicksMissed);
  if (const auto by = profile.meta().find("recorded_by"); by != profile.meta().end())
    quality.recorded_by = by->second;
  quality.retried = profile.counter(counters::kRetried);
  quality.cut = profile.counter(counters::kCut);
  quality.detached = profile.counter(counters::kDetached);
  quality.unproved = profile.counter(counters::kUnproved);
  quality.lost = profile.counter(counters::kLost);
  for (const auto& [name, words] : kReasons) {
    if (int64_t count = profile.counter(name); count > 0) {
      quality.reasons.push_back({std::string(name.substr(kRejected.size())), std::string(words), count});
      quality.rejected += count;
    }
  }
  std::stable_sort(quality.reasons.begin(), quality.reasons.end(),
                   [](const RejectReason& a, const RejectReason& b) { return a.count > b.count; });
  quality.left_out = profile.counter(counters::kLeftOut);
  quality.native = profile.counter(counters::kNative);
  quality.native_whole = profile.counter(counters::kNativeWhole);
  quality.native_restarted = profile.counter(counters::kNativeRestarted);
  quality.native_cut = profile.counter(counters::kNativeCut);
  quality.native_unmerged = profile.counter(counters::kNativeUnmerged);
  quality.native_without_event = greatest(profile, counters::kNativeWithoutEvent);
  quality.kernel_threads = profile.counter(counters::kKernelThreads);
  quality.target_time = profile.counter(counters::kTargetTime);
  quality.recorder_time = profile.counter(counters::kRecorderTime);
  // Rates and the elapsed time are facts of one process or of the recorder, never sums over processes.
  quality.elapsed = greatest(profile, counters::kElapsed);
  quality.asked_rate = double(greatest(profile, counters::kAskedRate)) / 1000;
  quality.most_rate = double(greatest(profile, counters::kMostRate)) / 1000;
  quality.max_overhead = double(greatest(profile, counters::kMaxOverhead)) / 1e6;
  // For one process, as an average of all; if that is not known, for the one sampled most.
  const auto sampled = sampled_time(profile);
  const int64_t ticks = sampled ? profile.counter(counters::kTicks) : greatest(profile, counters::kTicks);
  quality.sampled = sampled.value_or(quality.elapsed);
  quality.processes = profile.processes().size();
  if (quality.sampled > 0) quality.achieved_rate = double(ticks) * 1e9 / double(quality.sampled);
  for (const Process& process : profile.processes()) {
    if (process.mode.empty()) continue;
    if (std::find(quality.modes.begin(), quality.modes.end(), process.mode) == quality.modes.end()) {
      quality.modes.push_back(process.mode);
    }
  }
  return quality;
}

bool QualitySummary::rate_by_overhead() const {
  // Sampling stays a little below the limit.
  constexpr double kNear = 0.7;
  return most_rate > 0 && achieved_rate < 0.9 * most_rate && max_overhead > 0 &&
         target_share() > kNear * max_overhead;
}

std::string quality_line(const QualitySummary& quality) {
  if (!quality.recorded_by.empty()) return foreign_quality_line(quality);
  std::string line = grouped(quality.samples) + " samples";
  if (quality.achieved_rate > 0) {
    line += " (" + rate(quality.achieved_rate) + " Hz";
    if (quality.asked_rate > 0) line += " of " + rate(quality.asked_rate) + " Hz asked";
    if (quality.rate_by_overhead())
      line += ": lowered, to take " + percent(quality.max_overhead) + " of a CPU";
    line += ")";
  }
  line += ", " + grouped(quality.missed) + " missed, " + grouped(quality.retried) + " retried, " +
          grouped(quality.rejected) + " rejected";
  if (quality.rejected > 0) {
    line += " (" + percent(quality.rejected_share()) + ":";
    for (size_t i = 0; i < quality.reasons.size(); ++i) {
      line += (i == 0 ? " " : ", ") + grouped(quality.reasons[i].count) + " " + quality.reasons[i].reason;
    }
    line += ")";
  }
  if (quality.cut > 0) line += ", " + grouped(quality.cut) + " cut";
  if (quality.detached > 0) line += ", " + grouped(quality.detached) + " detached";
  if (quality.unproved > 0) line += ", " + grouped(quality.unproved) + " unproved";
  if (quality.lost > 0) line += ", " + grouped(quality.lost) + " lost";
  if (quality.left_out > 0) line += ", " + grouped(quality.left_out) + " frames left out";
  if (quality.kernel_threads > 0) {
    line += ", " + grouped(quality.kernel_threads) +
            (quality.kernel_threads == 1 ? " kernel thread" : " kernel threads") +
            " (io_uring or vhost) left out";
  }
  if (quality.native > 0) {
    line += "; native frames: " + grouped(quality.native) + " samples, " +
            percent(double(quality.native_whole) / double(quality.native)) + " whole";
    if (quality.native_restarted > 0) line += ", " + grouped(quality.native_restarted) + " with a gap";
    if (quality.native_cut > 0) line += ", " + grouped(quality.native_cut) + " cut";
    if (quality.native_unmerged > 0) line += ", " + grouped(quality.native_unmerged) + " not merged";
  }
  if (!quality.modes.empty()) {
    line += "; read: ";
    for (size_t i = 0; i < quality.modes.size(); ++i) line += (i == 0 ? "" : ", ") + quality.modes[i];
  }
  if (quality.elapsed > 0) {
    line += "; took " + percent(quality.target_share()) + " of a CPU from " +
            (quality.processes > 1 ? "each process" : "the target") + ", recorder " +
            percent(double(quality.recorder_time) / double(quality.elapsed)) + " of a CPU";
  }
  return line;
}

std::string quality_warning(const QualitySummary& quality) {
  if (!quality.needs_warning()) return {};
  return percent(quality.rejected_share()) +
         " of the samples could not be read and were rejected: the shares of code that is hard to read may "
         "be too small";
}

std::string cost_warning(const QualitySummary& quality) {
  constexpr double kFelt = 0.1;
  // Reported only if this far above --max-overhead; a recording of less than a second proves little.
  constexpr double kMuchMore = 1.25;
  const double share = quality.target_share();
  if (share >= kFelt) {
    return "sampling took " + percent(share) +
           " of a CPU from the program, which ran that much slower while it was recorded: use a lower rate "
           "(-r) "
           "or --max-overhead" +
           (quality.in_kernel() ? ", or --mode no-kernel if its threads leave their CPUs often" : "");
  }
  const bool is_above = quality.max_overhead > 0 && share > quality.max_overhead * kMuchMore;
  if (!is_above || !quality.in_kernel() || quality.processes > 1 || quality.elapsed < kSecond) return {};
  // Above the budget, and a lower rate does not help.
  return fmt::format(
      "its threads leave their CPUs so often that recording these switches took {} of a CPU from it, above "
      "the limit of {} (--max-overhead); --mode no-kernel takes less, and knows less about waits",
      percent(share), percent(quality.max_overhead));
}

}  // namespace phlox::view
