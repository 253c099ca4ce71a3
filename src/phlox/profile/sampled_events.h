// What another tool sampled besides time, or in its place: cycles, page faults, allocated bytes. Each event
// has a number from 1 and a name in the recording's meta. A Sample has the number of its event, and the
// count. Phlox's own recordings have none: they sample all threads.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "phlox/profile/profile.h"

namespace phlox::profile {

// nanoseconds: the count of such a sample is in its times, and Sample::value is not used.
enum class Unit : uint8_t { nanoseconds, count, bytes };
std::string_view unit_key(Unit unit);  // "ns", "count", "bytes"

struct SampledEvent {
  std::string name;  // "cache-misses:u", "inuse_space"
  Unit unit = Unit::count;

  friend bool operator==(const SampledEvent&, const SampledEvent&) = default;
};

// A perf with thousands of tracepoints stays below.
inline constexpr uint16_t kMostSampledEvents = 4096;

// In a difference of two profiles, a decrease is an event with this text after the name of the other.
inline constexpr std::string_view kLess = " (less)";

// Number 1 is shown unless another is asked for, or it has no samples. Numbers have no gaps.
void put_sampled_event(Sink& sink, uint16_t number, const SampledEvent& event);
// By number - 1.
std::vector<SampledEvent> sampled_events(const Profile& profile);

}  // namespace phlox::profile
