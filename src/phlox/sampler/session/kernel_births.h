// Children of recorded processes, from the kernel's report of their birth until the recorder begins with
// them. The kernel's records about them are kept meanwhile, so they are recorded from their birth on, even if
// they have ended. Used only by KernelSources.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "phlox/sampler/kernel/wire.h"
#include "phlox/sampler/session/backend.h"
#include "phlox/sampler/session/program.h"

namespace phlox::sampler {

class KernelBirths {
 public:
  struct Newborn {
    Birth birth;
    kernel_process place{};
    bool ended = false;
    std::vector<std::vector<std::byte>> said;  // records
  };

  // `place`, `program`: of the parent.
  void add(const kernel_birth& birth, const kernel_process& place, const Program& program);
  // A program that ended before the recorder knew of it, with all known facts: `program` has its start,
  // `said` its end.
  void add_ended(std::unique_ptr<Program> program, pid_t parent, const kernel_exit& said);
  // nullptr: it is none of these.
  const Newborn* find(uint32_t id) const;
  bool has(pid_t pid) const;
  // A record of one of these; otherwise false.
  bool keep(uint32_t id, std::span<const std::byte> record);
  // It runs another program already, or is not wanted.
  void forget(uint32_t id) { take(id); }
  // Those born before `until`, or ended, that were not returned before, the oldest first. Their records are
  // kept until take().
  std::vector<Birth> give(Nanoseconds until);
  Newborn take(uint32_t id);

  // Records for which there was no room.
  uint64_t lost() const { return lost_; }

 private:
  std::map<uint32_t, Newborn> newborn_;  // by id, in order of birth
  size_t kept_ = 0;                      // bytes
  uint64_t lost_ = 0;
};

}  // namespace phlox::sampler
