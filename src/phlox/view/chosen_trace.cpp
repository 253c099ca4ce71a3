#include "phlox/view/chosen_trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "phlox/profile/trace_ids.h"
#include "phlox/view/trace_parts.h"

namespace phlox::view {

using namespace profile;

namespace {

constexpr size_t kSpanDigits = 16;

using TraceSet = std::set<std::array<uint8_t, 16>>;

tl::unexpected<Error> no_such_trace(const Profile& profile, const std::string& id) {
  if (profile.trace_times().empty()) {
    return fail(ErrorKind::usage, "this recording has no traces: no process published them",
                "an SDK with OpenTelemetry's thread context publishes them, such as ddtrace 4.16");
  }
  TraceSet all;
  for (const TraceTime& time : profile.trace_times()) all.insert(time.ids.trace);
  const std::string there = fmt::format("the recording has {} {}; phlox report lists those that took longest",
                                        all.size(), all.size() == 1 ? "trace" : "traces");
  if (id.size() == kSpanDigits)
    return fail(ErrorKind::usage, fmt::format("this recording has no span {}", id),
                fmt::format("16 digits are a span, 32 a trace; {}", there));
  return fail(ErrorKind::usage,
              fmt::format("this recording has no trace {}{}", id.size() < 32 ? "that begins with " : "", id),
              there);
}

bool is_of(const TraceTime& time, std::string_view id, bool of_span) {
  return of_span ? id_text(time.ids.span) == id : id_text(time.ids.trace).starts_with(id);
}

// By index of trace_times().
Result<std::vector<bool>> chosen_times(const Profile& profile, const std::string& asked) {
  std::string id = asked;
  const auto& times = profile.trace_times();
  std::vector<bool> chosen(times.size(), false);
  TraceSet traces;
  const bool of_span = is_span(profile, id);
  // Some tools show only the lower half of a trace's id, if the upper one is zero.
  if (id.size() == kSpanDigits && !of_span) id.insert(0, kSpanDigits, '0');
  for (size_t i = 0; i < times.size(); ++i) {
    if (!is_of(times[i], id, of_span)) continue;
    chosen[i] = true;
    traces.insert(times[i].ids.trace);
  }
  if (traces.empty()) return no_such_trace(profile, asked);
  // A span's id alone is unique enough that nobody needs to tell two traces with the same one apart.
  if (traces.size() > 1 && !of_span) {
    return fail(ErrorKind::usage, fmt::format("{} traces begin with {}", traces.size(), id),
                fmt::format("give more digits, as of {} and {}", id_text(*traces.begin()),
                            id_text(*std::next(traces.begin()))));
  }
  return chosen;
}

}  // namespace

bool is_span(const Profile& profile, std::string_view id) {
  const auto& times = profile.trace_times();
  return id.size() == kSpanDigits && std::any_of(times.begin(), times.end(), [&](const TraceTime& time) {
           return is_of(time, id, true);
         });
}

Result<void> show_trace(Profile& profile, const Choices& choices) {
  if (!choices.trace) return {};
  const auto chosen = chosen_times(profile, *choices.trace);
  if (!chosen) return fail(chosen);
  const TraceParts traces(profile);
  std::vector<Sample> samples;
  for (const Sample& sample : profile.samples()) {
    traces.each_part(sample, [&](const Sample& part, uint32_t index) {
      if (index != TraceParts::kNone && (*chosen)[index]) samples.push_back(part);
    });
  }
  profile.replace_samples(std::move(samples), profile.stacks());
  std::vector<TraceTime> times;
  for (size_t i = 0; i < chosen->size(); ++i) {
    if ((*chosen)[i]) times.push_back(profile.trace_times()[i]);
  }
  profile.replace_trace_times(std::move(times));
  return {};
}

}  // namespace phlox::view
