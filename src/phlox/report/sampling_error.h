// How far sampling alone may have moved the weight of a function, a line or a whole recording: the error of
// where time was spent, not of how long the program ran. analysis.cpp uses it; the page has the same in
// web/src/model/sampling_error.ts. Pure.
//
// Between two samples of a thread, w of its time passed. If one of them found the item and the other did not,
// it is not known how much of w belongs to the item:
//
//   variance = ¾ Σ w²     over pairs of neighbouring samples of one thread, where one found the item
//
// If samples were independent of each other, half of the sum would be the variance of a coin, n p (1 - p) w²;
// three quarters allow for loops that are about as long as the distance of samples. A function that is found
// many times in a row, a phase of the program, has an error only at its two ends: it is not an error of the
// recording that a program does different things at different times. Threads may change together, so their
// changes within half an interval count as one if that gives more.
#pragma once

#include <cstdint>
#include <vector>

#include "phlox/base/clock.h"
#include "phlox/report/seen_stacks.h"

namespace phlox::report {

// Half would be right for independent samples. Samples at about equal distances hit a loop of about that
// length at nearly the same place: simulated programs then have up to 1.21 times the error that half gives.
inline constexpr double kOfSquares = 0.75;

// Two neighbouring samples of one thread with different stacks.
struct Crossing {
  Nanoseconds time = 0;
  uint32_t from = 0, to = 0;  // nodes of a Tree, or kNotChosen
  double weight = 0;
};
inline constexpr uint32_t kNotChosen = UINT32_MAX;  // the choices exclude that sample

class Crossings {
 public:
  explicit Crossings(size_t threads) : threads_(threads + 1) {}
  // The next row of a thread: this many samples of one stack, with a weight between them.
  void add(uint32_t thread, Nanoseconds time, uint32_t node, double weight, uint64_t samples);
  // Time of the thread before its next sample, which no sample found.
  void pass(uint32_t thread, double weight) { threads_[thread].unseen += weight; }

  double step() const { return weight_ > 0 ? squares_ / weight_ : 0; }
  Nanoseconds interval() const;  // between two samples of a thread, as an average
  std::vector<Crossing> in_time();

 private:
  struct Last {
    bool any = false;
    uint32_t node = 0;
    double weight = 0, unseen = 0;
    Nanoseconds time = 0;
  };
  std::vector<Last> threads_;
  std::vector<Crossing> all_;
  double weight_ = 0, squares_ = 0;
  uint64_t samples_ = 0;
  Nanoseconds length_ = 0;
};

// By item; [0]: no item.
struct ItemVariances {
  std::vector<double> self, alone, total;
};
struct Variances {
  ItemVariances functions, lines;
  double whole = 0;
};
// `crossings` in the order of time.
Variances sampling_variances(const Tree& tree, const Items& items, const std::vector<Crossing>& crossings,
                             Nanoseconds interval);

}  // namespace phlox::report
