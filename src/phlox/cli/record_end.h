// The last messages of `phlox record`, and its exit status, from how the recording ended. Pure:
// record_command gathers the values, and prints the messages.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "phlox/base/result.h"
#include "phlox/cli/talk.h"
#include "phlox/naming/native_names.h"
#include "phlox/process/launch.h"
#include "phlox/sampler/session/recorder.h"

namespace phlox::cli {

struct RecordEnd {
  sampler::Outcome outcome;
  std::optional<Error> error;  // of the recording, or of its output
  pid_t pid = 0;               // the first process; 0: none was given
  bool native = false;
  std::string none_runs;  // why a selection took no process (record_words.h)
  std::string refused;    // of a selection: the processes that may not be read
  std::vector<naming::NativeRows::Missing> missing;
  std::string summary;  // the first lines of the report
  // Of the output: see Destination.
  std::string recording, where, written;
  bool exports = false, stays = false;
  std::vector<std::string> remarks, notes;
  std::optional<std::string> why_view_is_empty;

  // No sample was taken, although nothing went wrong.
  bool is_empty() const { return outcome.progress.samples == 0 && !error; }
};

// In the order in which they are printed.
std::vector<Message> last_messages(const RecordEnd& end);
// `program`: how the program that was started for the recording ended.
int exit_status(const RecordEnd& end, const std::optional<process::ExitStatus>& program);

}  // namespace phlox::cli
