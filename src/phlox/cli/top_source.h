// The source of `phlox top`: processes that it records into a private file, or a recording that may be
// growing. Used by the screen's thread; the recorder has its own.
#pragma once

#include <signal.h>

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "phlox/base/result.h"
#include "phlox/cli/talk.h"
#include "phlox/sampler/session/recorder.h"
#include "phlox/selection/selection.h"
#include "phlox/symbols/debug_files.h"
#include "phlox/top/layout.h"
#include "phlox/top/model.h"

namespace phlox::cli {

class TopSource {
 public:
  struct Options {
    std::string file;  // a recording; otherwise:
    std::vector<pid_t> pids;
    std::shared_ptr<selection::Selection> selection;  // null: only those processes
    std::vector<std::string> program;                 // started if there are neither
    sampler::Options recorder;
    symbols::DebugSearch debug_search;
    Nanoseconds window = 5 * kSecond;
  };
  // `mask`: the signal mask for a program that is started. `stop` ends the recorder.
  static Result<std::unique_ptr<TopSource>> open(const Options& options, const sigset_t& mask,
                                                 std::atomic<bool>& stop, Talk& talk);
  virtual ~TopSource() = default;

  // Reads the new rows.
  virtual Result<void> refresh() = 0;
  // With names for native frames.
  virtual top::Seen seen() = 0;
  virtual top::Head head() const = 0;
  // No more rows will come.
  virtual bool has_ended() const = 0;
  // Saves the samples to a recording; returns a message about it.
  virtual std::string save() = 0;
  // Ends the recording. runs_on(): whether a program that was started is still running. Then the message, and
  // the error.
  virtual void close() = 0;
  virtual bool runs_on() { return false; }
  virtual std::vector<std::string> notes() const = 0;
  virtual std::optional<Error> error() const = 0;
};

}  // namespace phlox::cli
