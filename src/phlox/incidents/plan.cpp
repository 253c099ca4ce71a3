#include "phlox/incidents/plan.h"

#include <algorithm>
#include <utility>

namespace phlox::incidents {

namespace {
constexpr Nanoseconds kHour = 3600 * kSecond;
}

Plan::Answer Plan::note(Cause cause, Nanoseconds now) {
  // Rows arrive late: what happened after an incident's time belongs to the next one.
  const auto open =
      std::find_if(open_.begin(), open_.end(), [&](const Incident& one) { return cause.time <= one.to; });
  if (open != open_.end()) {
    open->from = std::min(open->from, cause.time - before_);
    const bool is_known = std::any_of(open->causes.begin(), open->causes.end(),
                                      [&](const Cause& one) { return one.kind == cause.kind; });
    if (open->causes.size() < kMostCauses) {
      open->causes.push_back(std::move(cause));
    } else {
      ++open->more_causes;
    }
    return is_known ? Answer::joins : Answer::joins_first;
  }
  while (!begun_.empty() && begun_.front() <= now - kHour) begun_.pop_front();
  if (begun_.size() >= most_an_hour_) {
    ++dropped_;
    return Answer::too_many;
  }
  begun_.push_back(now);
  const Nanoseconds from = std::min(cause.time, now) - before_;
  open_.push_back({from, std::max(cause.time, now) + after_, {std::move(cause)}, 0});
  return Answer::begins;
}

std::optional<Nanoseconds> Plan::due() const {
  return open_.empty() ? std::nullopt : std::optional(open_.front().to);
}

std::optional<Incident> Plan::take_due(Nanoseconds now) {
  if (open_.empty() || now < open_.front().to) return {};
  return take_rest();
}

std::optional<Incident> Plan::take_rest() {
  if (open_.empty()) return {};
  Incident first = std::move(open_.front());
  open_.pop_front();
  return first;
}

}  // namespace phlox::incidents
