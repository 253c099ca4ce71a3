#include "phlox/report/comparison.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

#include "phlox/report/analysis.h"

namespace phlox::report {
namespace {

// Up to this many, all ways to assign the runs to two sides are tried; otherwise kRandomDeals random ones.
constexpr double kMostDeals = 50'000;
constexpr size_t kRandomDeals = 20'000;

double reach(const Amount& before, const Amount& after, double z) {
  return z * std::sqrt(before.variance + after.variance +
                       z * z / 4 * (before.step * before.step + after.step * after.step));
}

// Student's quantile, exact for 1 and 2 degrees of freedom, for which quantile() is not suitable.
double students(double chance, double freedom) {
  const double whole = std::max(1.0, std::floor(freedom));
  if (whole == 1) return 1 / std::tan(3.14159265358979323846 * chance / 2);
  if (whole == 2) return (1 - chance) * std::sqrt(2 / (chance * (2 - chance)));
  return quantile(chance, static_cast<uint32_t>(whole) + 1);
}

double variance_of(const std::vector<Amount>& runs) {
  if (runs.size() < 2) return 0;
  const double mean = mean_of(runs);
  double sum = 0;
  for (const Amount& run : runs) sum += (run.value - mean) * (run.value - mean);
  return sum / double(runs.size() - 1);
}

// Which runs are assigned to the second side, deal by deal; the first deal is the actual one.
std::vector<std::vector<bool>> deals(size_t before, size_t after) {
  std::vector<bool> dealt(before + after, false);
  std::fill(dealt.begin() + static_cast<std::ptrdiff_t>(before), dealt.end(), true);
  std::vector<std::vector<bool>> all = {dealt};
  if (ways_to_deal(before, after) <= kMostDeals) {
    while (std::next_permutation(dealt.begin(), dealt.end())) all.push_back(dealt);
    return all;
  }
  std::mt19937_64 random(1);  // fixed seed: the same result every time
  while (all.size() < kRandomDeals) {
    for (size_t i = dealt.size() - 1; i > 0; --i) {
      const size_t j = random() % (i + 1);
      const bool other = dealt[i];
      dealt[i] = dealt[j];
      dealt[j] = other;
    }
    all.push_back(dealt);
  }
  return all;
}

// Values of one item, for its statistic in a deal.
struct Item {
  std::vector<double> values;  // of all runs, minus their mean
  double scale = 0;            // 0: nothing differs
};

Item item_of(const Runs& runs) {
  Item item;
  double sampling = 0;
  for (const auto* side : {&runs.before, &runs.after}) {
    for (const Amount& run : *side) {
      item.values.push_back(run.value);
      sampling += run.variance + run.step * run.step;
    }
  }
  const double count = double(item.values.size());
  const double mean = std::accumulate(item.values.begin(), item.values.end(), 0.0) / count;
  double squares = 0;
  for (double& value : item.values) squares += (value - mean) * (value - mean), value -= mean;
  item.scale = squares > 0 ? std::sqrt((squares + sampling) / count) : 0;
  return item;
}

double statistic(const Item& item, const std::vector<bool>& dealt, double before, double after) {
  if (item.scale == 0) return 0;
  double second = 0;
  for (size_t i = 0; i < dealt.size(); ++i) second += dealt[i] ? item.values[i] : 0;
  // Both sides add up to 0.
  return std::abs(second / after + second / before) / item.scale;
}

// Rounding must not distinguish two equal deals.
constexpr double kAlike = 1 - 1e-9;

std::vector<double> chances_of_any(const std::vector<Item>& items, const std::vector<std::vector<bool>>& all,
                                   double before, double after) {
  std::vector<double> own(items.size());
  for (size_t i = 0; i < items.size(); ++i) own[i] = statistic(items[i], all[0], before, after);
  std::vector<size_t> order(items.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return own[a] > own[b]; });
  std::vector<double> count(items.size(), 0);
  for (const auto& dealt : all) {
    double greatest = 0;
    for (size_t rank = order.size(); rank-- > 0;) {
      const size_t i = order[rank];
      greatest = std::max(greatest, statistic(items[i], dealt, before, after));
      count[i] += greatest >= own[i] * kAlike;
    }
  }
  double highest = 0;
  for (const size_t i : order) {
    highest = std::max(highest, count[i] / double(all.size()));
    count[i] = highest;
  }
  return count;
}

std::vector<double> chances_by_rate(const std::vector<Item>& items, const std::vector<std::vector<bool>>& all,
                                    double before, double after) {
  std::vector<double> chance(items.size(), 0);
  for (size_t i = 0; i < items.size(); ++i) {
    const double own = statistic(items[i], all[0], before, after);
    for (const auto& dealt : all) chance[i] += statistic(items[i], dealt, before, after) >= own * kAlike;
    chance[i] /= double(all.size());
  }
  std::vector<size_t> order(items.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return chance[a] < chance[b]; });
  double lowest = 1;
  for (size_t rank = order.size(); rank-- > 0;) {
    lowest = std::min(lowest, chance[order[rank]] * double(order.size()) / double(rank + 1));
    chance[order[rank]] = lowest;
  }
  return chance;
}

// The difference of two recordings with its interval: sampling error, and time without samples.
Comparison by_sampling(const Amount& before, const Amount& after) {
  Comparison result;
  result.difference = after.value - before.value;
  const double own = reach(before, after, quantile(kMissing, 0));
  result.low = result.difference - own - before.unseen;
  result.high = result.difference + own + after.unseen;
  return result;
}

// Welch's test: each side has its own variance. That of a side with one run is unknown.
Comparison by_welch(const Runs& runs) {
  Comparison result;
  result.difference = mean_of(runs.after) - mean_of(runs.before);
  double error = 0, squares = 0;
  for (const auto* side : {&runs.before, &runs.after}) {
    if (side->empty()) continue;
    const double count = double(side->size());
    double step = 0;
    for (const Amount& run : *side) step = std::max(step, run.step * run.step);
    const double of_mean = (variance_of(*side) + step) / count;
    error += of_mean;
    squares += count > 1 ? of_mean * of_mean / (count - 1) : HUGE_VAL;
  }
  const double freedom = squares > 0 ? error * error / squares : 1;
  const double half = squares == HUGE_VAL ? HUGE_VAL
                      : error == 0        ? 0
                                          : students(kMissing, freedom) * std::sqrt(error);
  result.low = result.difference - half;
  result.high = result.difference + half;
  return result;
}

}  // namespace

double mean_of(const std::vector<Amount>& runs) {
  double sum = 0;
  for (const Amount& run : runs) sum += run.value;
  return runs.empty() ? 0 : sum / double(runs.size());
}

double Margin::of(double before, double after) const {
  return std::max(own * std::max(before, after), least);
}

double reach_of(const Amount& before, const Amount& after, size_t compared) {
  return reach(before, after, quantile(kFalseAlarms / double(std::max<size_t>(1, compared)), 0));
}

double reach_of(const Amount& amount) {
  return reach(amount, {}, quantile(kMissing, 0));
}

Comparison judge_recordings(const Amount& before, const Amount& after, const Margin& margin,
                            size_t compared) {
  Comparison result = by_sampling(before, after);
  const double strict = reach_of(before, after, compared);
  const double least = margin.of(before.value, after.value);
  const double lowest = result.difference - strict - before.unseen;
  const double highest = result.difference + strict + after.unseen;
  if (lowest > 0 && result.difference > least) {
    result.outcome = Outcome::more;
  } else if (highest < 0 && -result.difference > least) {
    result.outcome = Outcome::less;
  } else if (lowest >= -least && highest <= least) {
    result.outcome = Outcome::same;
  }
  return result;
}

Comparison interval_of(const Runs& runs) {
  if (runs.before.size() > 1 || runs.after.size() > 1) return by_welch(runs);
  const Amount before = runs.before.empty() ? Amount{} : runs.before.front();
  const Amount after = runs.after.empty() ? Amount{} : runs.after.front();
  return by_sampling(before, after);
}

double ways_to_deal(size_t before, size_t after) {
  double ways = 1;
  for (size_t i = 1; i <= std::min(before, after) && ways < 1e12; ++i)
    ways *= double(before + after + 1 - i) / double(i);
  return ways;
}

bool can_decide(size_t before, size_t after) {
  if (before < 2 || after < 2) return false;
  // With equal numbers of runs, the mirrored deal is just as rare.
  const double rarest = (before == after ? 2 : 1) / ways_to_deal(before, after);
  return rarest <= kFalseAlarms;
}

size_t runs_needed() {
  size_t each = 2;
  while (!can_decide(each, each)) ++each;
  return each;
}

std::vector<Comparison> judge_runs(const std::vector<Runs>& items, const Margin& margin) {
  std::vector<Comparison> results;
  for (const Runs& runs : items) results.push_back(by_welch(runs));
  if (items.empty()) return results;
  const size_t n = items.front().before.size(), m = items.front().after.size();
  if (!can_decide(n, m)) return results;
  std::vector<Item> pooled;
  for (const Runs& runs : items) pooled.push_back(item_of(runs));
  const auto all = deals(n, m);
  const double rarest = 2 / double(all.size()) * double(items.size());
  const auto chances = rarest <= kFalseAlarms ? chances_by_rate(pooled, all, double(n), double(m))
                                              : chances_of_any(pooled, all, double(n), double(m));
  for (size_t i = 0; i < items.size(); ++i) {
    Comparison& result = results[i];
    result.chance = chances[i];
    const double least = margin.of(mean_of(items[i].before), mean_of(items[i].after));
    if (result.chance <= kFalseAlarms && result.difference != 0) {
      result.outcome = result.difference > 0 ? Outcome::more : Outcome::less;
    } else if (result.low >= -least && result.high <= least) {
      result.outcome = Outcome::same;
    }
  }
  return results;
}

}  // namespace phlox::report
