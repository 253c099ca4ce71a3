// The statistics of a difference, without functions and files: amounts in, verdicts out. Two questions:
//
//   judge_recordings   Do these two recordings differ? The error is that of sampling alone.
//   judge_runs         Would other runs differ too? Only repeated runs can say: a permutation test.
//
// The page has the first in web/src/model/comparison.ts; tests/cases/comparison.json holds both to it. Pure.
#pragma once

#include <cstddef>
#include <vector>

namespace phlox::report {

// What is compared may be seconds, or seconds a second: any amount.
struct Amount {
  double value = 0;
  double variance = 0;  // by sampling alone
  double step = 0;      // what one sample stands for
  double unseen = 0;    // of the recording's time in which nothing was sampled: it may be this, too
};

// Below either of these a difference is not one that is reported. `least` is an amount.
struct Margin {
  double own = 0.1;  // of the larger of the two
  double least = 0;
  double of(double before, double after) const;
};

// of recordings: same, unclear, less, more. of runs: unchanged, inconclusive, less, more.
enum class Outcome { same, unclear, less, more };

struct Comparison {
  double difference = 0;     // after - before
  double low = 0, high = 0;  // 99 % interval, this item alone
  Outcome outcome = Outcome::unclear;
  double chance = 1;  // of runs: adjusted for all that is compared
};

inline constexpr double kFalseAlarms = 0.01;  // of a whole comparison of equal programs

// `compared`: so many such questions are asked at once (Bonferroni).
//   reach(z) = z √(V + z² / 4 (s² + s²))      V: both variances; s: the steps
// The second term is that of few samples: nothing seen of an item is "less than", not "nothing". It differs
// when reach and margin both are exceeded; it is the same when the interval is within the margin. What was
// not seen before may make it less of an increase, what was not seen after less of a decrease.
Comparison judge_recordings(const Amount& before, const Amount& after, const Margin& margin, size_t compared);
// How far a difference may be from the true one, at the strictness that verdicts have.
double reach_of(const Amount& before, const Amount& after, size_t compared);
// 0 if there are none.
double mean_of(const std::vector<Amount>& runs);
// Of an amount by itself: 99 % interval.
double reach_of(const Amount& amount);

// One item in every run.
struct Runs {
  std::vector<Amount> before, after;
};
// The difference of the means with its 99 % interval: of two recordings by sampling, of runs by Welch. One
// side may be empty: then of the other by itself.
Comparison interval_of(const Runs& runs);
// How many ways there are to deal the runs to the two sides; capped.
double ways_to_deal(size_t before, size_t after);
// Whether any result of so many runs is rarer than kFalseAlarms.
bool can_decide(size_t before, size_t after);
size_t runs_needed();  // of each side

// The statistic of an item is |mean - mean| / √(variance of all its runs together + that of sampling): what
// it is divided by is the same however the runs are dealt, and no item with a small spread by luck wins. The
// chance of an item is how many of all ways to deal the runs make one as large; where few ways there are,
// as large in any item (Westfall and Young's step-down), else by Benjamini and Hochberg over all items.
// Which of both depends on the numbers of runs and items alone. Either keeps the rate of false discoveries
// below kFalseAlarms. Unchanged: Welch's 99 % interval of the difference lies within the margin.
std::vector<Comparison> judge_runs(const std::vector<Runs>& items, const Margin& margin);

}  // namespace phlox::report
