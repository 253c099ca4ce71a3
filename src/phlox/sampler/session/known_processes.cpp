#include "phlox/sampler/session/known_processes.h"

#include <limits>

namespace phlox::sampler {
namespace {

// An ended process may still be found for this long. After that, another may have its id.
constexpr Nanoseconds kFoundLate = kSecond;
constexpr Nanoseconds kNotEnded = std::numeric_limits<Nanoseconds>::max();

}  // namespace

KnownProcesses::Met KnownProcesses::meet(pid_t pid, pid_t parent, const Image& image) {
  Met met;
  met.row = profile::ProcessId(next_row_++);
  if (const auto known = last_.find(parent); known != last_.end()) {
    met.parent = known->second.row;
    // A fork inherits the start of its stack, which is random, from its parent; an execve gives it another.
    met.is_fork = known->second.image == image && image.start_stack != 0;
  }
  met.is_first = last_.insert_or_assign(pid, Last{met.row, image}).second;
  if (became_another_ == pid) became_another_ = 0;
  return met;
}

void KnownProcesses::note_birth(pid_t pid) {
  born_[pid] = kNotEnded;
}

void KnownProcesses::note_end(pid_t pid, Nanoseconds now) {
  if (const auto born = born_.find(pid); born != born_.end()) born->second = now;
}

void KnownProcesses::note_exec(pid_t pid) {
  born_.erase(pid);
  became_another_ = pid;
}

bool KnownProcesses::may_be_found_late(pid_t pid, Nanoseconds now) const {
  const auto born = born_.find(pid);
  return born != born_.end() && born->second > now - kFoundLate;
}

}  // namespace phlox::sampler
