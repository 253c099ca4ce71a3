// Where the threads' time of requests to an endpoint is spent: in its handler, in the tasks that this one
// awaits, and in jobs of thread pools. Sums, table, JSON. Pure.
#pragma once

#include <map>
#include <set>
#include <utility>
#include <vector>

#include "phlox/report/json_text.h"
#include "phlox/report/report.h"
#include "phlox/report/table.h"
#include "phlox/view/endpoints.h"
#include "phlox/view/loop_stacks.h"
#include "phlox/view/wait_class.h"

namespace phlox::report {

// Of one endpoint.
class EndpointPartSums {
 public:
  // `waits`: as for the endpoint; none: it is not waiting that counts.
  void add(const profile::Profile& profile, const view::EndpointPlace& place, const profile::Sample& sample,
           Nanoseconds cpu, view::WaitClass waits, Nanoseconds wall);
  // The longest first. Empty: there is only the handler.
  std::vector<EndpointPartRow> rows(const profile::Profile& profile) const;

 private:
  struct Sum {
    profile::FrameId function;
    EndpointPartRow row;
    std::set<uint32_t> threads, processes;
  };
  std::map<std::pair<view::EndpointPart, view::Function>, Sum> sums_;
};

// No rows: no endpoint has tasks or jobs.
Table endpoint_part_table(const Report& report);
void write_endpoint_parts(JsonText& json, const EndpointRow& row);

}  // namespace phlox::report
