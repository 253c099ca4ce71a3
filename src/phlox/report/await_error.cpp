#include "phlox/report/await_error.h"

#include <algorithm>
#include <string_view>
#include <utility>

namespace phlox::report {
namespace {

constexpr std::string_view kRecordingEnded = "recording ended";  // Process::how_ended

// The sums of one bin by item, and the variances of all bins so far.
class BinSums {
 public:
  explicit BinSums(size_t items) : sums_(items + 1), variances_(items + 1) {}

  void add(uint32_t item, double change) { sums_[item] += change; }
  void close_bin() {
    for (size_t i = 1; i < sums_.size(); ++i) {
      variances_[i] += sums_[i] * sums_[i] * kOfSquares;
      sums_[i] = 0;
    }
  }
  std::vector<double> finish() { return std::move(variances_); }

 private:
  std::vector<double> sums_, variances_;
};

struct BinSumsOfKind {
  explicit BinSumsOfKind(size_t items) : self(items), total(items) {}
  void close_bin() {
    self.close_bin();
    total.close_bin();
  }
  // Nothing native awaits.
  ItemVariances finish(size_t items) {
    return {self.finish(), std::vector<double>(items + 1), total.finish()};
  }

  BinSums self, total;
};

}  // namespace

double unseen_of(const profile::TaskCensus& census) {
  if (census.times == 0) return 0;
  return double(census.span) / double(census.times) *
         double(census.unproved + census.ended + census.beyond + census.without_stack);
}

CensusError census_error(const profile::Profile& profile, const profile::TaskRows& tasks) {
  CensusError error;
  error.is_known = std::all_of(tasks.times.begin(), tasks.times.end(),
                               [](const profile::TaskTime& row) { return row.changes.has_value(); });
  error.missing_end.resize(profile.processes().size() + 1);
  for (const profile::TaskCensus& census : tasks.censuses) {
    if (census.times == 0) continue;
    const double every = double(census.span) / double(census.times);
    error.step = std::max(error.step, every);
    error.unseen += unseen_of(census);
    if (!census.process || census.process.value > profile.processes().size()) continue;
    // A recorder that stops takes a last census of a process that lives on. Of others, the tasks of the last
    // census may have ended before the process did.
    const profile::Process& process = profile.processes()[census.process.value - 1];
    if (process.end != 0 && process.how_ended != kRecordingEnded)
      error.missing_end[census.process.value] = every;
  }
  return error;
}

ChangeSum::Bins ChangeSum::bins_of(const profile::TaskRows& tasks, const profile::TaskTime& row,
                                   const CensusError& error) {
  Bins bins{};
  if (row.changes) std::copy(row.changes->bins.begin(), row.changes->bins.end(), bins.begin());
  const profile::ProcessId process =
      row.loop ? tasks.loops[row.loop.value - 1].process : profile::ProcessId();
  if (process.value < error.missing_end.size())
    bins.back() = double(row.at_end) * error.missing_end[process.value];
  return bins;
}

double ChangeSum::variance() const {
  double sum = 0;
  for (const double one : bins_) sum += one * one;
  return sum * kOfSquares;
}

Variances await_variances(const Tree& tree, const Items& items, const std::vector<AwaitAt>& rows) {
  BinSumsOfKind functions(items.functions), lines(items.lines);
  BinSums whole(1);
  std::vector<double> beneath(tree.parent.size());
  for (size_t bin = 0; bin < ChangeSum::kBins; ++bin) {
    std::fill(beneath.begin(), beneath.end(), 0);
    for (const AwaitAt& row : rows) {
      const double change = row.changes[bin];
      beneath[row.node] += change;
      whole.add(1, change);
      const uint32_t owner = tree.frame[tree.owner[row.node]];
      functions.self.add(items.function[owner], change);
      lines.self.add(items.line[owner], change);
    }
    for (size_t node = tree.parent.size(); node-- > 1;) {
      functions.total.add(tree.function[node], beneath[node]);
      lines.total.add(tree.line[node], beneath[node]);
      beneath[tree.parent[node]] += beneath[node];
    }
    functions.close_bin();
    lines.close_bin();
    whole.close_bin();
  }
  return {functions.finish(items.functions), lines.finish(items.lines), whole.finish()[1]};
}

}  // namespace phlox::report
