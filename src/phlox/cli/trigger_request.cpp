#include "phlox/cli/trigger_request.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "phlox/cli/values.h"
#include "phlox/exporters/registry.h"
#include "phlox/push/metrics_port.h"

namespace phlox::cli {

using incidents::Condition;
using incidents::Kind;

namespace {

// For an incident that is written while the next one waits.
constexpr Nanoseconds kSpareTime = 60 * kSecond;

Result<void> read_conditions(const CommandLine& line, const TriggerArguments& a, TriggerRequest& request) {
  for (const std::string& text : a.on) {
    auto condition = named(line, "--on", incidents::parse_condition(text));
    if (!condition) return fail(condition);
    if (condition->kind == Kind::http) {
      if (auto possible = push::MetricsPort::check(condition->address, "--on http"); !possible)
        return possible;
    }
    request.conditions.push_back(*std::move(condition));
  }
  return {};
}

}  // namespace

bool TriggerRequest::takes_signal(int number) const {
  return std::any_of(conditions.begin(), conditions.end(),
                     [&](const Condition& one) { return one.kind == Kind::signal && one.signal == number; });
}

Nanoseconds TriggerRequest::least_kept() const {
  Nanoseconds longest = 0;
  for (const Condition& one : conditions) {
    if (one.kind == Kind::cpu || one.kind == Kind::cpu_wait) longest = std::max(longest, one.over);
    longest = std::max(longest, one.length);
  }
  return before + after + longest + kRowsSettled + kSpareTime;
}

Result<void> check_trigger_use(const TriggerArguments& a) {
  if (!a.on.empty() ||
      (a.before.empty() && a.after.empty() && a.max_incidents.empty() && a.incident_space.empty()))
    return {};
  return fail(ErrorKind::usage, "--before, --after, --max-incidents and --incident-space need --on",
              "for example: phlox record --on stall=200ms -o incidents -p PID");
}

Result<TriggerRequest> trigger_request_of(const CommandLine& line, const TriggerArguments& a,
                                          const std::string& output) {
  TriggerRequest request;
  if (a.on.empty()) return request;
  if (auto read = read_conditions(line, a, request); !read) return fail(read);
  if (auto read = read_option(line, "--before", a.before, parse_duration, request.before); !read)
    return fail(read);
  if (auto read = read_option(line, "--after", a.after, parse_duration, request.after); !read)
    return fail(read);
  if (auto read = read_option(line, "--incident-space", a.incident_space, parse_size, request.most_bytes);
      !read)
    return fail(read);
  if (!a.max_incidents.empty()) {
    auto most = parse_count("--max-incidents", a.max_incidents);
    if (!most) return fail(most);
    request.most_an_hour = *most;
  }
  if (output.empty())
    return fail(ErrorKind::usage, "--on needs -o: a folder for the incidents", "for example: -o incidents");
  if (output == "-" || exporters::find_format_for_file(output) != nullptr || output.ends_with(".phlox"))
    return fail(ErrorKind::usage, fmt::format("with --on, -o names a folder, not a file such as {}", output),
                "for example: -o incidents");
  request.folder = output;
  while (request.folder.size() > 1 && request.folder.ends_with('/')) request.folder.pop_back();
  return request;
}

Result<Nanoseconds> kept_for(const TriggerRequest& request, const std::string& typed,
                             std::optional<Nanoseconds> otherwise) {
  const Nanoseconds least = request.least_kept();
  if (typed.empty()) return std::max(least, otherwise.value_or(0));
  if (*otherwise >= least) return *otherwise;
  return fail(
      ErrorKind::usage, fmt::format("--keep: {} is too short for these incidents", typed),
      fmt::format("at least --keep {}s, or a shorter --before or --after", (least + kSecond - 1) / kSecond));
}

}  // namespace phlox::cli
