// The page's data about the slowest single requests (view/slow_requests.h).
#pragma once

#include "phlox/exporters/page_json.h"
#include "phlox/profile/profile.h"
#include "phlox/profile/task_time.h"
#include "phlox/view/choices.h"

namespace phlox::exporters {

// The array `requests`, the longest first. `tasks`: of the same recording, the only one of the page; nullptr:
// none.
void put_requests(Json& head, const profile::Profile& profile, const profile::TaskRows* tasks,
                  const view::Choices& choices);

}  // namespace phlox::exporters
