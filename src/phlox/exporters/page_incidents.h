// The page's data about the causes of an incident (view/incident_causes.h).
#pragma once

#include <string>

#include "phlox/exporters/page_json.h"
#include "phlox/profile/profile.h"

namespace phlox::exporters {

// "Incident: stall of 405 ms at 12.3 s, and 2 more. "; empty: the recording is not one of an incident.
std::string incident_title(const profile::Profile& profile);
// An object for each cause, into a list that is open. `whose`: "before: "; empty: there is one recording.
void put_incidents(Json& json, const profile::Profile& profile, const std::string& whose);

}  // namespace phlox::exporters
