// Numbers the events that a foreign recording sampled, in the order of their first appearance, and limits
// their counts so that sums cannot overflow.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <string_view>

#include "phlox/base/clock.h"
#include "phlox/profile/sampled_events.h"

namespace phlox::importers {

// Whether a unit that counts is that of one kind of cores: Intel's, Arm's, Apple's.
inline bool is_of_one_kind_of_cores(std::string_view unit) {
  return unit.starts_with("cpu_") || unit.starts_with("armv") ||
         (unit.starts_with("apple_") && unit.ends_with("_pmu"));
}

// The cores of a hybrid processor count the same event separately, and perf names them by their kind:
// "cpu_core/cycles/" and "cpu_atom/cycles/u" are the program's "cycles" and "cycles:u".
inline std::string on_all_cores(std::string_view name) {
  const size_t slash = name.find('/');
  if (slash == std::string_view::npos || !is_of_one_kind_of_cores(name.substr(0, slash)))
    return std::string(name);
  const std::string_view event = name.substr(slash + 1);
  const size_t end = event.find('/');
  if (end == 0 || end == std::string_view::npos) return std::string(name);
  std::string_view modifiers = event.substr(end + 1);
  while (modifiers.starts_with(':')) modifiers.remove_prefix(1);
  return std::string(event.substr(0, end)) + (modifiers.empty() ? "" : ":" + std::string(modifiers));
}

// The message if events were joined: "cpu_atom/cycles/, cpu_core/cycles/". Empty: none were.
class HybridEvents {
 public:
  void met(std::string_view name) {
    if (const std::string all = on_all_cores(name); all != name) names_[all].insert(std::string(name));
  }
  std::string warning() const {
    std::string text;
    for (const auto& [all, kinds] : names_) {
      if (kinds.size() < 2) continue;
      if (!text.empty()) text += "; ";
      for (const std::string& kind : kinds) text += kind + (kind == *kinds.rbegin() ? "" : " and ");
      text += " are shown together, as " + all;
    }
    return text;
  }

 private:
  std::map<std::string, std::set<std::string>> names_;
};

// The time that a sample of a clock represents.
class ClockPeriods {
 public:
  Nanoseconds take(uint64_t period) {
    longer_ += period > kLongest;
    return static_cast<Nanoseconds>(std::min(period, kLongest));
  }
  // How many of them were longer than an hour; each of those is shown as an hour.
  uint64_t longer() const { return longer_; }
  std::string warning() const {
    return longer_ == 1 ? "1 sample stands for more than an hour and is shown as an hour"
                        : std::to_string(longer_) +
                              " samples stand for more than an hour each and are shown as an hour";
  }

 private:
  static constexpr uint64_t kLongest = uint64_t{3600} * kSecond;
  uint64_t longer_ = 0;
};

class EventNumbers {
 public:
  explicit EventNumbers(profile::Sink& sink) : sink_(sink) {}

  // The event's number; a new event is reported to the sink. 0: it has no name, or there are too many.
  uint16_t of(const profile::SampledEvent& event) {
    if (event.name.empty()) return 0;
    const auto known = numbers_.find(event.name);
    if (known != numbers_.end()) return known->second;
    if (numbers_.size() >= profile::kMostSampledEvents) return 0;
    const auto number = static_cast<uint16_t>(numbers_.size() + 1);
    numbers_.emplace(event.name, number);
    profile::put_sampled_event(sink_, number, event);
    return number;
  }

  // The most that all values together may be: readers of recordings accept no more.
  static constexpr uint64_t kMost = std::numeric_limits<int64_t>::max();
  // `value`, or less if all values together exceed kMost.
  int64_t take(uint64_t value) {
    const uint64_t taken = std::min(value, left_);
    left_ -= taken;
    left_out_ = left_out_ || taken < value;
    return static_cast<int64_t>(taken);
  }
  bool left_out() const { return left_out_; }
  // The message in that case.
  static constexpr const char* kLeftOut =
      "the values add up to more than 9,223,372,036,854,775,807; what is beyond was left out";

 private:
  profile::Sink& sink_;
  bool left_out_ = false;
  std::map<std::string, uint16_t, std::less<>> numbers_;
  uint64_t left_ = kMost;
};

}  // namespace phlox::importers
