// The processes that a recording has met, by their ids: the row and the image of the last program of each,
// and which were recorded from their birth on. Pure. Used by the recorder's thread.
#pragma once

#include <sys/types.h>

#include <map>
#include <optional>
#include <unordered_map>

#include "phlox/base/clock.h"
#include "phlox/profile/model.h"
#include "phlox/sampler/session/program.h"

namespace phlox::sampler {

class KnownProcesses {
 public:
  struct Met {
    profile::ProcessId row;
    std::optional<profile::ProcessId> parent;  // its row
    bool is_fork = false;                      // of the parent's program
    bool is_first = true;                      // no other program of the process was met
  };
  // The next program of a process begins.
  Met meet(pid_t pid, pid_t parent, const Image& image);
  bool contains(pid_t pid) const { return last_.contains(pid); }

  // Its birth was reported, and it is recorded from then on, until it ends or calls execve.
  void note_birth(pid_t pid);
  void note_end(pid_t pid, Nanoseconds now);
  void note_exec(pid_t pid);
  // Whether a search may still find it although it was recorded from its birth on.
  bool may_be_found_late(pid_t pid, Nanoseconds now) const;
  // The last one whose program ended by execve, while no program is met in it; 0: none.
  pid_t became_another() const { return became_another_; }

 private:
  struct Last {
    profile::ProcessId row;
    Image image;
  };
  std::map<pid_t, Last> last_;
  std::unordered_map<pid_t, Nanoseconds> born_;  // and the time of their end
  uint32_t next_row_ = 1;
  pid_t became_another_ = 0;
};

}  // namespace phlox::sampler
