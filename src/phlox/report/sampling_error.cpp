#include "phlox/report/sampling_error.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace phlox::report {
namespace {

// The variance of each item of one kind.
class Adder {
 public:
  explicit Adder(size_t items) : rows_(items + 1), variance_(items + 1, 0) {}

  void change(uint32_t item, double weight) {
    if (item == 0) return;
    if (rows_[item].here == 0) touched_.push_back(item);
    rows_[item].here += weight;
  }
  // All changes of one crossing are added: an item that was left and entered again did not change.
  void close_crossing(int64_t moment) {
    for (const uint32_t item : touched_) {
      Row& row = rows_[item];
      const double change = row.here;
      row.here = 0;
      if (change == 0) continue;
      if (row.moment != moment) close_moment(item);
      row.moment = moment;
      row.sum += change;
      row.squares += change * change;
    }
    touched_.clear();
  }
  std::vector<double> finish() {
    for (uint32_t item = 1; item < rows_.size(); ++item) close_moment(item);
    return std::move(variance_);
  }

 private:
  struct Row {
    double here = 0, sum = 0, squares = 0;
    int64_t moment = -1;
  };
  void close_moment(uint32_t item) {
    Row& row = rows_[item];
    variance_[item] += std::max(row.squares, row.sum * row.sum) * kOfSquares;
    row.sum = row.squares = 0;
  }

  std::vector<Row> rows_;
  std::vector<double> variance_;
  std::vector<uint32_t> touched_;
};

struct OfKind {
  explicit OfKind(size_t items) : self(items), alone(items), total(items) {}
  void leaf(uint32_t item, uint32_t of_owner, bool owns_itself, double weight) {
    self.change(of_owner, weight);
    if (owns_itself) {
      alone.change(item, weight);
    } else {
      self.change(item, weight);
    }
  }
  void close_crossing(int64_t moment) {
    for (Adder* adder : {&self, &alone, &total}) adder->close_crossing(moment);
  }
  ItemVariances finish() { return {self.finish(), alone.finish(), total.finish()}; }

  Adder self, alone, total;
};

}  // namespace

void Crossings::add(uint32_t thread, Nanoseconds time, uint32_t node, double weight, uint64_t samples) {
  Last& last = threads_[thread];
  const double here = (weight + last.unseen) / double(samples);
  last.unseen = 0;
  if (node != kNotChosen) {
    weight_ += here * double(samples);
    squares_ += here * here * double(samples);
  }
  if (last.any) {
    samples_ += samples;
    length_ += std::max<Nanoseconds>(0, time - last.time);
    // The weight of a sample that is not chosen is unknown.
    const double square = last.node == kNotChosen ? here * here
                          : node == kNotChosen    ? last.weight * last.weight
                                                  : (here * here + last.weight * last.weight) / 2;
    if (last.node != node && square > 0) all_.push_back({time, last.node, node, std::sqrt(square)});
  }
  last = {true, node, here, 0, time};
}

Nanoseconds Crossings::interval() const {
  return samples_ > 0 ? length_ / static_cast<Nanoseconds>(samples_) : 0;
}

std::vector<Crossing> Crossings::in_time() {
  auto earlier = [](const Crossing& a, const Crossing& b) { return a.time < b.time; };
  if (!std::is_sorted(all_.begin(), all_.end(), earlier)) std::stable_sort(all_.begin(), all_.end(), earlier);
  return std::move(all_);
}

Variances sampling_variances(const Tree& tree, const Items& items, const std::vector<Crossing>& crossings,
                             Nanoseconds interval) {
  OfKind functions(items.functions), lines(items.lines);
  Adder whole(1);
  const Nanoseconds moments = std::max<Nanoseconds>(1, interval / 2);
  const Nanoseconds begin = crossings.empty() ? 0 : crossings.front().time;
  for (const Crossing& crossing : crossings) {
    const int64_t moment = (crossing.time - begin) / moments;
    auto leaf = [&](uint32_t node, double weight) {
      if (node == kNotChosen) return;
      whole.change(1, weight);
      // Native code below a Python function counts for itself and for that function.
      const uint32_t frame = tree.frame[node], owner = tree.frame[tree.owner[node]];
      functions.leaf(items.function[frame], items.function[owner], owner == frame, weight);
      lines.leaf(items.line[frame], items.line[owner], owner == frame, weight);
    };
    auto above = [&](uint32_t node, double weight) {
      functions.total.change(tree.function[node], weight);
      lines.total.change(tree.line[node], weight);
      return tree.parent[node];
    };
    leaf(crossing.from, -crossing.weight);
    leaf(crossing.to, crossing.weight);
    // Up to the common ancestor: parents come before their children.
    uint32_t from = crossing.from == kNotChosen ? 0 : crossing.from;
    uint32_t to = crossing.to == kNotChosen ? 0 : crossing.to;
    while (from != to) {
      if (from > to) {
        from = above(from, -crossing.weight);
      } else {
        to = above(to, crossing.weight);
      }
    }
    functions.close_crossing(moment);
    lines.close_crossing(moment);
    whole.close_crossing(moment);
  }
  return {functions.finish(), lines.finish(), whole.finish()[1]};
}

}  // namespace phlox::report
