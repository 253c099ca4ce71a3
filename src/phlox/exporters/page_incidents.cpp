#include "phlox/exporters/page_incidents.h"

#include <fmt/format.h>

#include "phlox/exporters/words.h"
#include "phlox/view/incident_causes.h"

namespace phlox::exporters {

std::string incident_title(const profile::Profile& profile) {
  const auto causes = view::incident_causes(profile);
  if (causes.empty()) return {};
  const view::IncidentCause& first = causes.front();
  std::string title =
      fmt::format("Incident: {} at {}", first.in_short, weight_words(first.time, view::Weight::wall));
  if (causes.size() > 1) title += fmt::format(", and {} more", causes.size() - 1);
  return title + ". ";
}

void put_incidents(Json& json, const profile::Profile& profile, const std::string& whose) {
  for (const view::IncidentCause& cause : view::incident_causes(profile)) {
    json.open('{');
    json.number("time", cause.time);
    json.text("kind", cause.kind);
    json.text("short", cause.in_short);
    json.text("words", whose + cause.words);
    json.close('}');
  }
}

}  // namespace phlox::exporters
