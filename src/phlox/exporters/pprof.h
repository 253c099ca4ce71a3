// The profile.proto of pprof, gzipped: for `go tool pprof`, Pyroscope, Parca, Grafana, Speedscope. Field
// numbers are those of github.com/google/pprof, proto/profile.proto. Has totals, no order in time.
// docs/formats.md is the reference.
#pragma once

#include <ostream>
#include <string>
#include <vector>

#include "phlox/base/result.h"
#include "phlox/exporters/event_trees.h"
#include "phlox/view/view.h"

namespace phlox::exporters {

struct PprofFacts {
  // For a tree with By::place: the libraries. nullptr: they have only a name.
  const std::vector<profile::Module>* modules = nullptr;
  view::Weight weight = view::Weight::wall;
  std::string event;    // the event of the weight, if it is of an event
  bool awaits = false;  // the tree is of await time
  std::vector<EventTree> others;
  bool by_line = false;
  // Each stack begins with its endpoint (view/endpoints.h), which becomes a label of its samples.
  bool endpoint_labels = false;
  // Native functions without a name have no line then: the receiver may know them by build-id and address.
  const profile::Profile* leaves_addresses_of = nullptr;
  int64_t start = 0;     // ns since 1970; 0: not known
  int64_t duration = 0;  // ns
  int64_t period = 0;    // ns of CPU time from one sample to the next, as it was asked for; 0: not written
  std::string comment;
};

// The message before compression.
std::string pprof_message(const view::CallTree& tree, const PprofFacts& facts);

Result<void> write_pprof(const view::CallTree& tree, const PprofFacts& facts, std::ostream& out);

}  // namespace phlox::exporters
