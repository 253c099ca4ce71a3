// The only place that turns samples into totals: a tree of labels, as the choices ask for it. Pure: takes a
// Profile, gives numbers.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "phlox/base/result.h"
#include "phlox/profile/profile.h"
#include "phlox/view/choices.h"
#include "phlox/view/frame_labels.h"

namespace phlox::view {

struct CallNode {
  uint32_t parent = 0;   // index; the root (index 0) is its own parent
  uint32_t label = 0;    // index into labels
  int64_t self = 0;      // weight of samples that end here
  int64_t total = 0;     // self and everything below
  uint64_t samples = 0;  // samples below (not intervals)
};

// The part of a node's weight with one Doing.
struct NodePart {
  int64_t self = 0;
  uint64_t samples = 0;  // below
};

// Parents come before children; children of a node are ordered by label name. Node 0 is "all". Rejected time
// is below one marker node under the root, whatever `by` says; time without any Python frame is below a
// marker of its own.
struct CallTree {
  std::vector<Label> labels;
  std::vector<CallNode> nodes;
  int64_t total = 0;     // weight of all samples that passed, rejected ones included
  int64_t rejected = 0;  // the weight of the rejected ones among them (they are under one marker node)
  uint64_t samples = 0;  // samples that passed
  // Only from build_whole_call_tree(): by node, the activity, shown or not (as Doing is numbered).
  std::vector<std::array<NodePart, kDoings>> parts;
};

Result<CallTree> build_call_tree(const profile::Profile& profile, const Choices& choices);
// The same totals, plus the nodes that `choices.show` hides (their totals are 0), and `parts`: for a picture
// whose reader may choose again.
Result<CallTree> build_whole_call_tree(const profile::Profile& profile, const Choices& choices);
// Totals for the samples of an event that is not shown (sampled_events.h).
Result<CallTree> build_call_tree_of_event(const profile::Profile& profile, const Choices& choices,
                                          uint16_t event);

}  // namespace phlox::view
