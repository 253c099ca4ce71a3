// libdwfl's walk of a captured thread: the same registers and the same bytes that ours gets. What our frames
// are held against, in tests and in bench/unwinding. x86-64.
#pragma once

#include <elfutils/libdwfl.h>
#include <sys/types.h>

#include <cstdint>
#include <vector>

#include "support/stopped_thread.h"

namespace phlox::test {

class DwflReference {
 public:
  // The process's modules as they are at this moment; what is loaded later, it does not know.
  explicit DwflReference(pid_t pid);
  ~DwflReference() { dwfl_end(dwfl_); }
  DwflReference(const DwflReference&) = delete;
  DwflReference& operator=(const DwflReference&) = delete;
  bool ok() const { return ok_; }

  // Innermost first, return addresses as they are. Of what the thread was when it last stopped.
  std::vector<uint64_t> pcs(const StoppedThread& thread);

 private:
  bool report(pid_t pid);

  Dwfl_Callbacks callbacks_{};
  Dwfl* dwfl_ = nullptr;
  const StoppedThread* captured_ = nullptr;
  bool ok_ = false;
};

}  // namespace phlox::test
