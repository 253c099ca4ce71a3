#include "phlox/view/endpoint_parts.h"

#include "phlox/view/awaiters.h"
#include "phlox/view/forks.h"
#include "phlox/view/task_endpoints.h"

namespace phlox::view {

using namespace profile;

EndpointParts::EndpointParts(const Profile& profile) : places_(profile.stacks().size() + 1) {
  struct At {
    FrameId last;         // the innermost Python function
    bool awaits = false;  // it awaits the next one
  };
  const auto outermost = task_endpoints(profile);
  std::vector<At> at(places_.size());
  for (uint32_t i = 1; i < places_.size(); ++i) {
    const Stack& row = profile.stacks()[i - 1];
    const uint32_t parent = row.parent.value < i ? row.parent.value : 0;
    at[i] = at[parent];
    places_[i] = places_[parent];
    if (!row.frame || row.frame.value > profile.frames().size()) continue;
    const Frame& frame = profile.frame(row.frame);
    if (is_fork_marker(frame)) {
      at[i] = At();
      places_[i] = Place();
    } else if (is_awaits_marker(frame)) {
      at[i].awaits = true;
    } else if (frame.kind == FrameKind::python) {
      const auto known = outermost.find(function_of(frame));
      const bool begins =
          known != outermost.end() && at[i].last && runs(known->second.kind, profile.frame(at[i].last));
      if (at[i].awaits || (begins && known->second.kind == Outermost::coroutine)) {
        places_[i] = {EndpointPart::task, row.frame};
      } else if (begins) {
        places_[i] = {EndpointPart::job, row.frame};
      }
      at[i] = {row.frame, false};
    }
  }
}

}  // namespace phlox::view
