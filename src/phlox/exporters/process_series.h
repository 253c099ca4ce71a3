// For stores that keep pprofs as series with labels (pyroscope.h, parca.h): one of each process, with a pprof
// of all kinds of time and of further events. Has totals, no order in time.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "phlox/base/result.h"
#include "phlox/view/view.h"

namespace phlox::exporters {

struct ProcessSeries {
  std::vector<std::pair<std::string, std::string>> labels;  // name, value
  std::string pprof;                                        // gzipped
};

// Native functions without a name have their address alone, for a store that knows them by build-id, or have
// it as their name.
enum class Unnamed : uint8_t { address, name_of_address };

// `rate_hz`: of the samples; 0: not known. `choices.states` and `choices.weight` are not used.
Result<std::vector<ProcessSeries>> process_series(const profile::Profile& profile,
                                                  const view::Choices& choices, double rate_hz,
                                                  Unnamed unnamed);

}  // namespace phlox::exporters
