// Compares frames with libdwfl's on the same captured bytes: stops a running thread at random moments and
// counts how often both find exactly the same return addresses. For tests/unwind and bench/unwinding. x86-64.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "phlox/unwind/unwinder.h"
#include "support/dwfl_reference.h"
#include "support/stopped_thread.h"

namespace phlox::test {

// Whether both found the same frames. Where code has no call frame information, libdwfl guesses by rbp or
// ends: compares up to the first frame that was found from instructions.
bool same_frames(const std::vector<unwind::NativeFrame>& ours, const std::vector<uint64_t>& theirs);

class FrameComparison {
 public:
  struct Library {
    size_t samples = 0, equal = 0;  // with a frame in it
  };
  struct Numbers {
    size_t samples = 0, equal = 0;
    size_t whole = 0;  // to the thread's start
    size_t said = 0;   // incomplete, reported as such, and correct up to there
    size_t frames = 0;
    int64_t ours_ns = 0, theirs_ns = 0;
    std::map<std::string, Library> libraries;  // by path
  };

  explicit FrameComparison(pid_t pid);
  bool ok() const { return reference_.ok(); }
  // Stops one thread once. False: the process has exited.
  bool take();
  const Numbers& numbers() const { return numbers_; }
  // The first few differences.
  const std::vector<std::string>& examples() const { return examples_; }

 private:
  void compare(const StoppedThread& thread);
  std::string place(uint64_t pc) const;
  std::string explain(const std::vector<uint64_t>& ours, const std::vector<uint64_t>& theirs) const;

  pid_t pid_;
  TargetTables tables_;
  DwflReference reference_;
  unwind::Unwinder unwinder_;
  unwind::NativeStack stack_;
  std::map<pid_t, std::unique_ptr<StoppedThread>> threads_;
  std::mt19937 random_{7};
  Numbers numbers_;
  std::vector<std::string> examples_;
};

}  // namespace phlox::test
