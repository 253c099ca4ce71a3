// In which part of the work for an endpoint a stack is: in its handler, in a task that the handler awaits, or
// in a job that a thread of a pool runs for it. Pure.
#pragma once

#include <vector>

#include "phlox/profile/profile.h"

namespace phlox::view {

enum class EndpointPart : uint8_t { handler, task, job };

class EndpointParts {
 public:
  struct Place {
    EndpointPart part = EndpointPart::handler;
    profile::FrameId function;  // the outermost one of the task or the job; none: of a handler
  };
  explicit EndpointParts(const profile::Profile& profile);
  // Only for stacks of an endpoint (endpoints.h).
  Place of(profile::StackId stack) const {
    return stack.value < places_.size() ? places_[stack.value] : Place();
  }

 private:
  std::vector<Place> places_;  // by id
};

}  // namespace phlox::view
