#include "phlox/importers/pprof_values.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

namespace phlox::importers {
namespace {

using Scale = std::pair<std::string_view, int64_t>;

// Units as pprof reads them (its internal/measurement): in upper or lower case, and in the plural.
int64_t scale_of_unit(std::string_view unit, std::span<const Scale> units) {
  std::string name(unit);
  for (char& c : name) {
    if ('A' <= c && c <= 'Z') c = static_cast<char>(c | 0x20);
  }
  const auto find = [&] {
    return std::find_if(units.begin(), units.end(), [&](const Scale& one) { return one.first == name; });
  };
  auto found = find();
  if (found == units.end() && name.size() > 2 && name.ends_with('s')) {
    name.pop_back();
    found = find();
  }
  return found == units.end() ? 0 : found->second;
}

// One unit in nanoseconds; 0 if it is no unit of time.
int64_t nanoseconds_of(std::string_view unit) {
  // Both letters for micro: austin2pprof's, and the other one.
  constexpr Scale kUnits[] = {{"nanosecond", 1},
                              {"ns", 1},
                              {"microsecond", 1'000},
                              {"us", 1'000},
                              {"\u03bcs", 1'000},
                              {"\u00b5s", 1'000},
                              {"millisecond", 1'000'000},
                              {"ms", 1'000'000},
                              {"second", kSecond},
                              {"sec", kSecond},
                              {"s", kSecond},
                              {"minute", 60 * kSecond},
                              {"hour", 3600 * kSecond},
                              {"hr", 3600 * kSecond}};
  return scale_of_unit(unit, kUnits);
}

// One unit in bytes; pprof's units of memory are powers of 1024.
int64_t bytes_of(std::string_view unit) {
  constexpr int64_t kK = 1024, kM = kK * kK, kG = kM * kK, kT = kG * kK, kP = kT * kK;
  constexpr Scale kUnits[] = {
      {"byte", 1},      {"b", 1},      {"kilobyte", kK}, {"kbyte", kK}, {"kb", kK},       {"kib", kK},
      {"megabyte", kM}, {"mbyte", kM}, {"mb", kM},       {"mib", kM},   {"gigabyte", kG}, {"gbyte", kG},
      {"gb", kG},       {"gib", kG},   {"terabyte", kT}, {"tbyte", kT}, {"tb", kT},       {"tib", kT},
      {"petabyte", kP}, {"pbyte", kP}, {"pb", kP},       {"pib", kP}};
  return scale_of_unit(unit, kUnits);
}

int64_t value_at(std::span<const int64_t> values, size_t place) {
  return place < values.size() ? values[place] : 0;
}

uint64_t magnitude(int64_t value) {
  return value < 0 ? ~static_cast<uint64_t>(value) + 1 : static_cast<uint64_t>(value);
}

// Saturates at the maximum.
uint64_t scaled(int64_t value, uint64_t scale) {
  uint64_t out = 0;
  return __builtin_mul_overflow(magnitude(value), scale, &out) ? std::numeric_limits<uint64_t>::max() : out;
}

bool are_samples(const PprofType& type) {
  return type.unit == "count" && (type.type == "samples" || type.type == "sample");
}

}  // namespace

std::optional<size_t> place_of_samples(std::span<const PprofType> types) {
  const auto found = std::find_if(types.begin(), types.end(), are_samples);
  return found == types.end() ? std::nullopt : std::optional(static_cast<size_t>(found - types.begin()));
}

void PprofValues::choose(std::span<const PprofType> types, std::string_view by_default, bool samples_fit) {
  if (samples_fit) samples_ = place_of_samples(types);
  std::optional<size_t> first, time, last;
  for (size_t i = 0; i < types.size(); ++i) {
    const auto& [type, unit] = types[i];
    if (i == samples_) continue;
    last = i;
    if (nanoseconds_of(unit) > 0 && !time) time = i;
    if (!by_default.empty() && type == by_default && !first) first = i;
  }
  if (!first) first = time ? time : last;
  if (!first) return;
  add(types[*first], *first);
  for (size_t i = 0; i < types.size(); ++i) {
    if (i != first && i != samples_) add(types[i], i);
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
  const uint64_t samples = samples_ ? magnitude(value_at(values, *samples_)) : 1;
  if (counted_.empty()) rows.sample(sample, samples);
  bool has_row = false;
  for (const Counted& counted : counted_) {
    // The number of samples is in the rows of the first value.
    const bool first = &counted == &counted_.front();
    const int64_t value = value_at(values, counted.place);
    if (value == 0 && !(first && samples_)) continue;
    const uint16_t event = value < 0 ? less_of(counted.shown.name, counted.shown.unit) : counted.event;
    const profile::Sample row = row_of(sample, counted, event, scaled(value, counted.scale));
    has_row ? rows.value(row) : rows.sample(row, first ? samples : 1);
    has_row = true;
  }
}

uint16_t PprofValues::less_of(const std::string& name, profile::Unit unit) {
  ++negative_;
  return numbers_.of({name + std::string(profile::kLess), unit});
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
