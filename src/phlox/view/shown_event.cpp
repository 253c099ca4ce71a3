#include "phlox/view/shown_event.h"

#include <fmt/format.h>

#include <algorithm>

#include "phlox/view/await_time.h"

namespace phlox::view {

using namespace profile;

namespace {

std::string names_of(const std::vector<SampledEvent>& events) {
  constexpr size_t kListed = 20;
  std::string names;
  for (size_t i = 0; i < std::min(events.size(), kListed); ++i)
    names += (i == 0 ? "" : ", ") + events[i].name;
  if (events.size() > kListed) names += fmt::format(" and {} more", events.size() - kListed);
  return names;
}

// 0: none.
uint16_t number_of(const std::vector<SampledEvent>& events, std::string_view name) {
  uint16_t alike = 0;
  for (size_t i = 0; i < events.size(); ++i) {
    const std::string_view whole = events[i].name;
    const auto number = static_cast<uint16_t>(i + 1);
    if (whole == name) return number;
    if (alike == 0 && whole.substr(0, whole.rfind(':')) == name) alike = number;
  }
  return alike;
}

bool has_samples(const Profile& profile, uint16_t number) {
  const auto is_of_it = [&](const Sample& sample) { return event_number(sample) == number; };
  const auto& shown = profile.samples();
  const auto& others = profile.samples_of_others();
  return std::any_of(shown.begin(), shown.end(), is_of_it) ||
         std::any_of(others.begin(), others.end(), is_of_it);
}

// In a difference of two profiles, all of the first event may have decreased.
uint16_t first_sampled(const Profile& profile, const std::vector<SampledEvent>& events) {
  if (has_samples(profile, 1)) return 1;
  const uint16_t less = number_of(events, events.front().name + std::string(kLess));
  if (less != 0 && has_samples(profile, less)) return less;
  size_t first = kMostSampledEvents + size_t{1};
  for (const auto* samples : {&profile.samples(), &profile.samples_of_others()}) {
    for (const Sample& sample : *samples) first = std::min<size_t>(first, event_number(sample));
  }
  return first > events.size() ? 1 : static_cast<uint16_t>(first);
}

}  // namespace

Result<void> show_event(Profile& profile, std::string_view name) {
  const auto events = sampled_events(profile);
  if (events.empty()) {
    if (name.empty()) return {};
    return fail(ErrorKind::usage, fmt::format("there is no event '{}': this recording holds time only", name),
                "leave --event out; --weight chooses wall, cpu or samples");
  }
  const uint16_t number = name.empty() ? first_sampled(profile, events) : number_of(events, name);
  if (number == 0) {
    return fail(ErrorKind::usage, fmt::format("no event '{}' was recorded", name),
                fmt::format("there are: {}", names_of(events)));
  }
  profile.show_samples_of(number);
  return {};
}

std::vector<bool> sampled_but_not_shown(const Profile& profile) {
  std::vector<bool> there(sampled_events(profile).size(), false);
  for (const Sample& sample : profile.samples_of_others()) {
    if (const size_t number = event_number(sample); number <= there.size()) there[number - 1] = true;
  }
  return there;
}

SampledEvent shown_event(const Profile& profile) {
  const auto events = sampled_events(profile);
  const size_t number = profile.shown_event();
  return number == 0 || number > events.size() ? SampledEvent() : events[number - 1];
}

Weight weight_of(Unit unit) {
  return unit == Unit::nanoseconds ? Weight::wall : unit == Unit::bytes ? Weight::bytes : Weight::count;
}

std::string_view unit_key(Weight weight) {
  if (is_time(weight)) return "ns";
  return weight == Weight::samples ? "samples" : weight == Weight::bytes ? "bytes" : "count";
}

std::string weight_title(const Profile& profile, Weight weight) {
  const std::string name = shown_event(profile).name;
  if (is_of_event(weight)) return name;
  if (shows_await_time(profile) && weight == Weight::wall) return "await time";
  // The time of threads, next to the await time of tasks, has no name.
  const std::string of_event =
      sampled_events(profile).size() > 1 && !name.empty() ? " of " + name : std::string();
  return (weight == Weight::samples ? "samples"
          : weight == Weight::cpu   ? "CPU time"
                                    : "wall time") +
         of_event;
}

}  // namespace phlox::view
