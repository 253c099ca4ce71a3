// Processes that recorded ones started and that are no Python: compilers, converters, shells. Only their CPU
// time is known, so that it is not counted as that of unrelated programs. The recorder stores it in meta
// (docs/recording.md); recordings of older versions lack it. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "phlox/profile/profile.h"

namespace phlox::profile {

struct Descendant {
  int32_t pid = 0;                 // 0: children that ended before they were seen
  int32_t parent = 0;              // its pid
  Nanoseconds start = 0, end = 0;  // first and last time at which it was seen
  Nanoseconds cpu = 0;             // during the recording, with the children that it has waited for
  bool ended = false;
  std::string command_line;

  friend bool operator==(const Descendant&, const Descendant&) = default;
};

// By CPU time, largest first.
std::vector<Descendant> descendants(const Profile& profile);
void put_descendants(Sink& sink, const std::vector<Descendant>& rows);

// Processes of one command line added up, by CPU time.
struct DescendantGroup {
  std::string command_line;
  size_t processes = 0;  // 0: the number is not known
  Nanoseconds cpu = 0;
};
std::vector<DescendantGroup> descendant_groups(const std::vector<Descendant>& rows);

}  // namespace phlox::profile
