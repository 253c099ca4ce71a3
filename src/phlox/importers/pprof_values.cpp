#include "phlox/importers/pprof_values.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

namespace phlox::importers {
namespace {

// What one of a unit is in nanoseconds; 0: it is none of time.
int64_t nanoseconds_of(std::string_view unit) {
  constexpr std::pair<std::string_view, int64_t> kUnits[] = {
      {"nanoseconds", 1},          {"ns", 1},         {"microseconds", 1'000}, {"us", 1'000},
      {"milliseconds", 1'000'000}, {"ms", 1'000'000}, {"seconds", kSecond},    {"s", kSecond},
      {"\u03bcs", 1'000},          {"\u00b5s", 1'000}};  // as austin2pprof writes it, and as others do
  for (const auto& [name, scale] : kUnits) {
    if (unit == name) return scale;
  }
  return 0;
}

// Likewise in bytes: pprof's units of memory are powers of 1024 (its internal/measurement).
int64_t bytes_of(std::string_view unit) {
  constexpr std::pair<std::string_view, int64_t> kUnits[] = {
      {"bytes", 1},       {"byte", 1},  {"B", 1},      {"kilobytes", 1024},        {"kb", 1024},
      {"kB", 1024},       {"KB", 1024}, {"kib", 1024}, {"megabytes", 1024 * 1024}, {"mb", 1024 * 1024},
      {"MB", 1024 * 1024}};
  for (const auto& [name, scale] : kUnits) {
    if (unit == name) return scale;
  }
  return 0;
}

int64_t value_at(std::span<const int64_t> values, size_t place) {
  return place < values.size() ? values[place] : 0;
}

uint64_t magnitude(int64_t value) {
  return value < 0 ? ~static_cast<uint64_t>(value) + 1 : static_cast<uint64_t>(value);
}

// Or the most there is.
uint64_t scaled(int64_t value, uint64_t scale) {
  uint64_t out = 0;
  return __builtin_mul_overflow(magnitude(value), scale, &out) ? std::numeric_limits<uint64_t>::max() : out;
}

bool are_looks(const PprofType& type) {
  return type.unit == "count" && (type.type == "samples" || type.type == "sample");
}

}  // namespace

std::optional<size_t> place_of_looks(std::span<const PprofType> types) {
  const auto found = std::find_if(types.begin(), types.end(), are_looks);
  return found == types.end() ? std::nullopt : std::optional(static_cast<size_t>(found - types.begin()));
}

void PprofValues::choose(std::span<const PprofType> types, std::string_view by_default,
                         uint64_t greatest_looks) {
  // A row of the model counts no more samples.
  if (greatest_looks <= std::numeric_limits<uint32_t>::max()) looks_ = place_of_looks(types);
  std::optional<size_t> first, time, last;
  for (size_t i = 0; i < types.size(); ++i) {
    const auto& [type, unit] = types[i];
    if (i == looks_) continue;
    last = i;
    if (nanoseconds_of(unit) > 0 && !time) time = i;
    if (!by_default.empty() && type == by_default && !first) first = i;
  }
  if (!first) first = time ? time : last;
  if (!first) return;
  add(types[*first], *first);
  for (size_t i = 0; i < types.size(); ++i) {
    if (i != first && i != looks_) add(types[i], i);
  }
}

void PprofValues::add(const PprofType& type, size_t place) {
  if (counted_.size() >= profile::kMostSampledEvents) return;
  Counted counted{place};
  profile::SampledEvent event{std::string(type.type.empty() ? type.unit : type.type), profile::Unit::count};
  if (const int64_t time = nanoseconds_of(type.unit); time > 0) {
    event.unit = profile::Unit::nanoseconds;
    counted.scale = static_cast<uint64_t>(time);
    counted.is_time = true;
    counted.is_cpu = type.type == "cpu";
  } else if (const int64_t bytes = bytes_of(type.unit); bytes > 0) {
    event.unit = profile::Unit::bytes;
    counted.scale = static_cast<uint64_t>(bytes);
  }
  if (!names_.insert(event.name).second) event.name += fmt::format("/{}/{}", type.unit, place);
  counted.event = numbers_.of(event);
  counted.shown = event;
  counted_.push_back(counted);
}

void PprofValues::put(const profile::Sample& sample, std::span<const int64_t> values, ForeignRows& rows) {
  const int64_t told_looks = looks_ ? value_at(values, *looks_) : 1;
  const auto looks = static_cast<uint64_t>(std::max<int64_t>(told_looks, 0));
  if (counted_.empty()) rows.sample(sample, looks);
  bool told = false;
  for (const Counted& counted : counted_) {
    // How often it was looked stands in the rows of the first one.
    const bool first = &counted == &counted_.front();
    const int64_t value = value_at(values, counted.place);
    if (value == 0 && !(first && looks_)) continue;
    const uint16_t event = value < 0 ? less_of(counted.shown.name, counted.shown.unit) : counted.event;
    const profile::Sample row = row_of(sample, counted, event, scaled(value, counted.scale));
    told ? rows.value(row) : rows.sample(row, first ? looks : 1);
    told = true;
  }
  if (told_looks < 0) {
    profile::Sample row = sample;
    row.event = less_of("samples", profile::Unit::count);
    row.value = numbers_.take(magnitude(told_looks));
    rows.value(row);
  }
}

uint16_t PprofValues::less_of(const std::string& name, profile::Unit unit) {
  ++negative_;
  return numbers_.of({name + " (less)", unit});
}

profile::Sample PprofValues::row_of(profile::Sample sample, const Counted& counted, uint16_t event,
                                    uint64_t amount) {
  sample.event = event;
  const int64_t value = numbers_.take(amount);
  if (!counted.is_time) {
    sample.value = value;
    return sample;
  }
  sample.wall = value;
  if (counted.is_cpu) {
    sample.cpu = value;
    sample.cpu_state = profile::CpuState::running;
  }
  return sample;
}

}  // namespace phlox::importers
