// The profile format of Callgrind, version 1: costs by line, and calls with the callee's total cost. For
// KCachegrind, QCachegrind and callgrind_annotate. Its description is valgrind's manual, "Callgrind Format
// Specification". docs/formats.md is the reference.
#pragma once

#include <ostream>
#include <string>
#include <vector>

#include "phlox/exporters/event_trees.h"
#include "phlox/profile/profile.h"
#include "phlox/view/view.h"

namespace phlox::exporters {

struct CallgrindFacts {
  view::Weight weight = view::Weight::wall;
  std::string command;
  std::string description;             // one line
  std::string event = {};              // the event of the weight, if it is of an event
  std::vector<EventTree> others = {};  // further costs
  bool awaits = false;                 // the tree is of await time
};

// `tree`: by line, with By::place.
void write_callgrind(const profile::Profile& profile, const view::CallTree& tree, const CallgrindFacts& facts,
                     std::ostream& out);

}  // namespace phlox::exporters
