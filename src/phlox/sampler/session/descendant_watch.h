// CPU time of processes that recorded ones started and that are not recorded because they are no Python:
// reads /proc about once a second. The time of a process that ends between two checks is counted with the
// parent that waited for it, unless that is a Python with recorded children. Used by the recorder's thread.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "phlox/base/clock.h"
#include "phlox/profile/descendants.h"

namespace phlox::sampler {

// Fields of /proc/PID/stat (fs/proc/array.c), in clock ticks.
struct ProcessTicks {
  pid_t parent = 0;
  uint64_t used = 0;    // by all of its threads
  uint64_t waited = 0;  // by the children that it has waited for, and by theirs
  uint64_t start = 0;   // since boot
};
std::optional<ProcessTicks> parse_process_ticks(std::string_view text);

// What the checks add up to. Pure.
class DescendantAccount {
 public:
  // `began`: of the recording, in ticks since boot.
  explicit DescendantAccount(uint64_t began, Nanoseconds tick) : began_(began), tick_(tick) {}

  struct Seen {
    pid_t pid = 0;
    ProcessTicks ticks;
    bool recorded = false;
    std::string command_line;  // of a process that is not recorded
  };
  // All processes of one check.
  void check(Nanoseconds now, const std::vector<Seen>& all);
  std::vector<profile::Descendant> rows() const;
  // Whether it was already seen under this name.
  bool knows(pid_t pid, uint64_t start) const { return others_.contains({pid, start}); }

 private:
  using Identity = std::pair<pid_t, uint64_t>;  // with its start
  struct Other {
    profile::Descendant row;
    uint64_t used_before = 0, waited_before = 0;
    ProcessTicks last;
    bool is_merged = false;  // a process above it with a row of its own has waited for it
    bool waits_for_recorded = false;
  };
  struct Recorded {
    uint64_t waited_before = 0, waited = 0;
    bool has_recorded_children = false;
    Nanoseconds first = 0, last = 0;
  };
  Nanoseconds time_of(uint64_t ticks) const { return static_cast<Nanoseconds>(ticks) * tick_; }
  void note_other(Nanoseconds now, const Seen& seen);
  using Rows = std::map<Identity, Other>;
  Rows::const_iterator parent_of(Identity id) const;
  Rows::const_iterator living_above(Identity id) const;
  pid_t waits_for(Identity id) const;
  void note_parents(const std::vector<Seen>& all);
  void note_ended(Nanoseconds now, const std::set<Identity>& there);

  uint64_t began_;
  Nanoseconds tick_;
  Rows others_;
  std::map<Identity, Recorded> recorded_;
};

class DescendantWatch {
 public:
  DescendantWatch();
  // `of`: the ancestors; `recorded`: whether this process is recorded.
  void check(Nanoseconds now, const std::vector<pid_t>& of, const std::function<bool(pid_t)>& recorded);
  bool is_due(Nanoseconds now) const { return now >= next_; }
  std::vector<profile::Descendant> rows() const { return account_.rows(); }

 private:
  DescendantAccount account_;
  Nanoseconds next_ = 0;
};

}  // namespace phlox::sampler
