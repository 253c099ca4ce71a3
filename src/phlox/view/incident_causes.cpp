#include "phlox/view/incident_causes.h"

#include <fmt/format.h>

#include <optional>
#include <string_view>

#include "phlox/base/text.h"
#include "phlox/view/sample_filter.h"

namespace phlox::view {

using namespace profile;

namespace {

constexpr size_t kMostCauses = 100;  // a file may lie

std::string_view next_field(std::string_view& text) {
  const size_t tab = text.find('\t');
  const std::string_view field = text.substr(0, tab);
  text = tab == text.npos ? std::string_view() : text.substr(tab + 1);
  return field;
}

// None: it is no cause.
std::optional<IncidentCause> read_cause(std::string_view text, Nanoseconds start) {
  const auto time = parse_number<Nanoseconds>(next_field(text));
  Nanoseconds since = 0;
  if (!time || __builtin_sub_overflow(*time, start, &since)) return {};
  IncidentCause cause;
  cause.time = since;
  cause.kind = next_field(text);
  cause.words = next_field(text);
  cause.in_short = next_field(text);
  if (cause.kind.empty()) return {};
  if (cause.in_short.empty()) cause.in_short = cause.kind;  // the oldest recordings have no short words
  return cause;
}

}  // namespace

std::pair<std::string, std::string> meta_of(const IncidentCause& cause, size_t number) {
  return {fmt::format("incident.{}", number),
          fmt::format("{}\t{}\t{}\t{}", cause.time, cause.kind, cause.words, cause.in_short)};
}

std::vector<IncidentCause> incident_causes(const Profile& profile) {
  std::vector<IncidentCause> causes;
  for (size_t i = 1; i <= kMostCauses; ++i) {
    const auto found = profile.meta().find(fmt::format("incident.{}", i));
    if (found == profile.meta().end()) break;
    if (auto cause = read_cause(found->second, recording_start(profile))) causes.push_back(*std::move(cause));
  }
  return causes;
}

}  // namespace phlox::view
