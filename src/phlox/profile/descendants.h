// Processes that recorded ones started and that are no Python: compilers, converters, shells. Nothing is
// known of what they do, but how much CPU time they used, so that it is not taken for that of strangers. The
// recorder says so in meta (docs/recording.md); recordings of older versions say nothing. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "phlox/profile/profile.h"

namespace phlox::profile {

struct Descendant {
  int32_t pid = 0;                 // 0: children that ended before they were seen
  int32_t parent = 0;              // its pid
  Nanoseconds start = 0, end = 0;  // seen from when, until when
  Nanoseconds cpu = 0;             // while it was recorded, with what it waited for
  bool ended = false;
  std::string command_line;

  friend bool operator==(const Descendant&, const Descendant&) = default;
};

// By CPU time, the most first.
std::vector<Descendant> descendants(const Profile& profile);
void put_descendants(Sink& sink, const std::vector<Descendant>& rows);

// Those of one command line together, by CPU time.
struct DescendantGroup {
  std::string command_line;
  size_t processes = 0;  // 0: it is not known how many
  Nanoseconds cpu = 0;
};
std::vector<DescendantGroup> descendant_groups(const std::vector<Descendant>& rows);

}  // namespace phlox::profile
