// What another tool sampled besides time, or in its place: cycles, page faults, bytes that were allocated.
// Each is numbered from 1 and named in the recording's meta; a Sample says which one it is of, and how much
// of it. Recordings of phlox itself have none: their samples are looks at all threads.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "phlox/base/result.h"
#include "phlox/profile/profile.h"
#include "phlox/profile/view.h"

namespace phlox::profile {

// nanoseconds: what such a sample counted is in its times, and Sample::value is not used.
enum class Unit : uint8_t { nanoseconds, count, bytes };
std::string_view unit_key(Unit unit);  // "ns", "count", "bytes"

struct SampledEvent {
  std::string name;  // "cache-misses:u", "inuse_space"
  Unit unit = Unit::count;

  friend bool operator==(const SampledEvent&, const SampledEvent&) = default;
};

// A perf with thousands of tracepoints stays below.
inline constexpr uint16_t kMostSampledEvents = 4096;

// Number 1 is the one that is shown unless another is asked for. Numbers leave no gaps.
void put_sampled_event(Sink& sink, uint16_t number, const SampledEvent& event);
// By number - 1.
std::vector<SampledEvent> sampled_events(const Profile& profile);

// From now on the profile's samples are those of this event; "": of the first one. "cycles" is "cycles:u"
// too, when there is no other. ErrorKind::usage: there is none of that name; the hint lists those that are
// there.
Result<void> show_event(Profile& profile, std::string_view name);

// By number - 1, of which events there are samples among those that are not shown.
std::vector<bool> sampled_besides(const Profile& profile);

// The one whose samples are shown. Without a name: the recording has none.
SampledEvent shown_event(const Profile& profile);

// What its samples weigh by what they counted.
Weight weight_of(Unit unit);
// In what a weight is told to machines: "ns", "samples", "count", "bytes".
std::string_view unit_key(Weight weight);

// What is weighed, in words: "wall time", "CPU time of cpu-clock" (where there are several events),
// "samples", "cache-misses".
std::string weight_title(const Profile& profile, Weight weight);

}  // namespace phlox::profile
