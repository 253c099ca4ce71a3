// What `phlox record` says while it records and when it is over: sentences out of numbers. When they are
// said, and what is done besides, is record_command's.
#pragma once

#include <sys/types.h>

#include <array>
#include <string>
#include <vector>

#include "phlox/cli/native_names.h"
#include "phlox/cli/selection.h"
#include "phlox/cli/talk.h"
#include "phlox/profile/quality.h"
#include "phlox/sampler/session/recorder.h"

namespace phlox::cli {

// Of a command line as much is said.
inline constexpr size_t kLongestCommandSaid = 120;

// The numbers of a recording as its quality line.
profile::QualitySummary quality_of(const sampler::Progress& p);
// The longest first: the last thing that a narrow terminal loses is how to end it.
std::array<std::string, 5> progress_lines(const sampler::Progress& p);
// "no Python whose command line matches 'x' is running; here run 4711 (python3 app.py), ...".
std::string none_runs(const Selection& selection);
// One that came to a recording, and its command line; empty: that is not known.
struct Newcomer {
  pid_t pid = 0;
  std::string title;
};
// "recording processes 12, 13 and 4 more (gunicorn: worker)": those that came together, each with its command
// line. Not of none.
std::string newcomers_words(const std::vector<Newcomer>& fresh);
std::string newcomers_words(const std::vector<pid_t>& fresh);
// What would make the native frames say more.
void say_missing(const std::vector<NativeRows::Missing>& missing, Talk& talk);

}  // namespace phlox::cli
