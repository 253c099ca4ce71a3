// The meaning of the values of a pprof sample: a number of samples, times, events that count. One row for
// each value.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "phlox/importers/event_numbers.h"
#include "phlox/importers/foreign_rows.h"

namespace phlox::importers {

// A ValueType of profile.proto: "alloc_space", "bytes".
struct PprofType {
  std::string_view type, unit;
};

// The value of a sample that is its number of samples, if there is one.
std::optional<size_t> place_of_samples(std::span<const PprofType> types);

class PprofValues {
 public:
  explicit PprofValues(profile::Sink& sink) : numbers_(sink) {}

  // `by_default`: default_sample_type; empty: the file has none. That type is shown first, otherwise time,
  // otherwise the last, as in pprof. `samples_fit`: whether a row of the model can hold each sample's number
  // of samples; if not, these numbers become values like others.
  void choose(std::span<const PprofType> types, std::string_view by_default, bool samples_fit);

  // Writes the rows of `sample`, which has its thread and stack. A difference of two profiles has negative
  // values: a separate event, "cpu (less)", counts those as positive.
  void put(const profile::Sample& sample, std::span<const int64_t> values, ForeignRows& rows);
  // How many values were negative.
  uint64_t negative() const { return negative_; }
  bool left_out() const { return numbers_.left_out(); }

 private:
  struct Counted {
    size_t place = 0;
    uint64_t scale = 1;  // to nanoseconds or bytes
    uint16_t event = 0;
    profile::SampledEvent shown = {};
    bool is_time = false, is_cpu = false;
  };

  void add(const PprofType& type, size_t place);
  profile::Sample row_of(profile::Sample sample, const Counted& counted, uint16_t event, uint64_t amount);
  uint16_t less_of(const std::string& name, profile::Unit unit);

  EventNumbers numbers_;
  std::optional<size_t> samples_;  // the value that is their number of samples
  std::vector<Counted> counted_;   // the others, with the one that is shown first at the front
  std::set<std::string> names_;
  uint64_t negative_ = 0;
};

}  // namespace phlox::importers
