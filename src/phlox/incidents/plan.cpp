#include "phlox/incidents/plan.h"

#include <algorithm>
#include <utility>

namespace phlox::incidents {

namespace {
constexpr Nanoseconds kHour = 3600 * kSecond;
}

Plan::Answer Plan::note(Cause cause, Nanoseconds now) {
  if (open_) {
    open_->from = std::min(open_->from, cause.time - before_);
    if (open_->causes.size() < kMostCauses) {
      open_->causes.push_back(std::move(cause));
    } else {
      ++open_->more_causes;
    }
    return Answer::joins;
  }
  while (!begun_.empty() && begun_.front() <= now - kHour) begun_.pop_front();
  if (begun_.size() >= most_an_hour_) {
    ++dropped_;
    return Answer::too_many;
  }
  begun_.push_back(now);
  const Nanoseconds from = std::min(cause.time, now) - before_;
  open_ = Incident{from, now + after_, {std::move(cause)}, 0};
  return Answer::begins;
}

std::optional<Nanoseconds> Plan::due() const {
  return open_ ? std::optional(open_->to) : std::nullopt;
}

std::optional<Incident> Plan::take_due(Nanoseconds now) {
  if (!open_ || now < open_->to) return {};
  return take_rest();
}

std::optional<Incident> Plan::take_rest() {
  return std::exchange(open_, std::nullopt);
}

}  // namespace phlox::incidents
