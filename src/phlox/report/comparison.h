// The statistics of a difference, without functions and files: amounts in, verdicts out. Two questions:
//
//   judge_recordings   Do these two recordings differ? The error is that of sampling alone.
//   judge_runs         Would other runs differ too? Only repeated runs can answer: a permutation test.
//
// The page has the first in web/src/model/comparison.ts; tests/cases/comparison.json tests both. Pure.
#pragma once

#include <cstddef>
#include <vector>

namespace phlox::report {

// The compared quantity may be seconds, or seconds a second: any amount.
struct Amount {
  double value = 0;
  double variance = 0;  // from sampling alone
  double step = 0;      // the amount that one sample represents
  double unseen = 0;    // time of the recording without samples, which may belong to the item
};

// A difference below either of these is not reported. `least` is an amount.
struct Margin {
  double own = 0.1;  // of the larger of the two
  double least = 0;
  double of(double before, double after) const;
};

// of recordings: same, unclear, less, more. of runs: unchanged, inconclusive, less, more.
enum class Outcome { same, unclear, less, more };

struct Comparison {
  double difference = 0;     // after - before
  double low = 0, high = 0;  // 99 % interval of this item alone
  Outcome outcome = Outcome::unclear;
  double chance = 1;  // of runs: adjusted for everything that is compared
};

inline constexpr double kFalseAlarms = 0.01;  // of a whole comparison of equal programs

// `compared`: the number of such questions asked at once (Bonferroni).
//   reach(z) = z √(V + z² / 4 (s² + s²))      V: both variances; s: the steps
// The second term is for few samples: an item without samples is "less than", not "nothing". The item differs
// if the difference exceeds both reach and margin; it is the same if the interval is within the margin. Time
// without samples before may make it less of an increase, time without samples after less of a decrease.
Comparison judge_recordings(const Amount& before, const Amount& after, const Margin& margin, size_t compared);
// How far a difference may be from the true one, at the strictness of verdicts.
double reach_of(const Amount& before, const Amount& after, size_t compared);
// 0 if there are none.
double mean_of(const std::vector<Amount>& runs);
// The 99 % interval of one amount.
double reach_of(const Amount& amount);

// One item in every run.
struct Runs {
  std::vector<Amount> before, after;
};
// The difference of the means with its 99 % interval: of two recordings by sampling, of runs by Welch. If one
// side is empty, the interval is that of the other.
Comparison interval_of(const Runs& runs);
// The number of ways to deal the runs to the two sides; capped.
double ways_to_deal(size_t before, size_t after);
// Whether any result of this many runs is rarer than kFalseAlarms.
bool can_decide(size_t before, size_t after);
size_t runs_needed();  // of each side

// The statistic of an item is |mean - mean| / √(variance of all its runs together + that of sampling). The
// divisor is the same however the runs are dealt, so no item wins by a spread that is small by luck. The
// chance of an item is the part of all deals that give as large a statistic: with few deals, as large in any
// item (Westfall and Young's step-down), otherwise by Benjamini and Hochberg over all items. Which of both is
// used depends only on the numbers of runs and items. Either keeps the rate of false discoveries below
// kFalseAlarms. Unchanged: Welch's 99 % interval of the difference is within the margin.
std::vector<Comparison> judge_runs(const std::vector<Runs>& items, const Margin& margin);

}  // namespace phlox::report
