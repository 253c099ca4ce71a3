// How far sampling alone may have moved await time. Between two censuses, a task may have come or gone at any
// moment, and another one may have come and gone. As for the samples of threads (sampling_error.h):
//
//   variance = ¾ Σ (change of the number of tasks × time between)²     over pairs of neighbouring censuses
//
// Tasks that come and go together count as one large change. Pure.
#pragma once

#include <array>
#include <cstdint>
#include <tuple>
#include <vector>

#include "phlox/profile/profile.h"
#include "phlox/profile/task_time.h"
#include "phlox/report/sampling_error.h"

namespace phlox::report {

// What the censuses of one recording can tell.
struct CensusError {
  bool is_known = false;  // all rows have their changes
  double step = 0;        // one task of one census, at the longest average distance of censuses
  // Await time of tasks that censuses found and could not read, or counted without their coroutines: it may
  // belong to anything.
  double unseen = 0;
  // By process: ns from the last census to the end of the process, on average.
  std::vector<double> missing_end;
};
double unseen_of(const profile::TaskCensus& census);
CensusError census_error(const profile::Profile& profile, const profile::TaskRows& tasks);

// The changes of a set of rows.
class ChangeSum {
 public:
  static constexpr size_t kBins = std::tuple_size_v<decltype(profile::TaskChanges::bins)> + 1;
  using Bins = std::array<double, kBins>;  // the last one: tasks that were there when the process ended

  static Bins bins_of(const profile::TaskRows& tasks, const profile::TaskTime& row, const CensusError& error);
  void add(const Bins& bins, double scale = 1) {
    for (size_t i = 0; i < kBins; ++i) bins_[i] += bins[i] * scale;
  }
  double variance() const;

 private:
  Bins bins_{};
};

// A row of await time at its node of the tree.
struct AwaitAt {
  uint32_t node = 0;
  ChangeSum::Bins changes;
};
Variances await_variances(const Tree& tree, const Items& items, const std::vector<AwaitAt>& rows);

}  // namespace phlox::report
