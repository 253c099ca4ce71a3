// libdwfl's walk of a captured thread, from the registers and bytes that ours gets. The reference for our
// frames in tests and in bench/unwinding. x86-64.
#pragma once

#include <elfutils/libdwfl.h>
#include <sys/types.h>

#include <cstdint>
#include <vector>

#include "support/stopped_thread.h"

namespace phlox::test {

class DwflReference {
 public:
  // Takes the process's current modules; it does not know those loaded later.
  explicit DwflReference(pid_t pid);
  ~DwflReference() { dwfl_end(dwfl_); }
  DwflReference(const DwflReference&) = delete;
  DwflReference& operator=(const DwflReference&) = delete;
  bool ok() const { return ok_; }

  // Innermost first, unmodified return addresses, as of the thread's last stop.
  std::vector<uint64_t> pcs(const StoppedThread& thread);

 private:
  bool report(pid_t pid);

  Dwfl_Callbacks callbacks_{};
  Dwfl* dwfl_ = nullptr;
  const StoppedThread* captured_ = nullptr;
  bool ok_ = false;
};

}  // namespace phlox::test
