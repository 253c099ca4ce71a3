#include "phlox/profile/sampled_events.h"

#include <fmt/format.h>

#include <iterator>

namespace phlox::profile {
namespace {

constexpr std::string_view kUnits[] = {"ns", "count", "bytes"};

std::string name_key(size_t number) {
  return fmt::format("event.{}", number);
}

Unit unit_of(std::string_view key) {
  for (size_t i = 0; i < std::size(kUnits); ++i) {
    if (key == kUnits[i]) return static_cast<Unit>(i);
  }
  return Unit::count;
}

}  // namespace

std::string_view unit_key(Unit unit) {
  return kUnits[static_cast<size_t>(unit)];
}

void put_sampled_event(Sink& sink, uint16_t number, const SampledEvent& event) {
  sink.emit_meta(name_key(number), event.name);
  sink.emit_meta(fmt::format("event_unit.{}", number), unit_key(event.unit));
}

std::vector<SampledEvent> sampled_events(const Profile& profile) {
  const auto& meta = profile.meta();
  std::vector<SampledEvent> events;
  while (events.size() < kMostSampledEvents) {
    const auto name = meta.find(name_key(events.size() + 1));
    if (name == meta.end()) break;
    const auto unit = meta.find(fmt::format("event_unit.{}", events.size() + 1));
    events.push_back({name->second, unit == meta.end() ? Unit::count : unit_of(unit->second)});
  }
  return events;
}

}  // namespace phlox::profile
