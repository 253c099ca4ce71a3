// The messages of `phlox record` during the recording: sentences made from numbers. record_command decides
// when to print them. Those at its end are in record_end.h.
#pragma once

#include <sys/types.h>

#include <array>
#include <string>
#include <vector>

#include "phlox/sampler/session/recorder.h"
#include "phlox/selection/selection.h"
#include "phlox/view/quality.h"

namespace phlox::cli {

// The longest part of a command line in a message.
inline constexpr size_t kLongestCommandSaid = 120;

// The numbers of a recording as its quality line.
view::QualitySummary quality_of(const sampler::Progress& p);
// The longest first: how to end the recording is the last part that a narrow terminal loses.
std::array<std::string, 5> progress_lines(const sampler::Progress& p);
// "no Python whose command line matches 'x' is running; here run 4711 (python3 app.py), ...".
std::string none_runs(const selection::Selection& selection);
// A process that joined a recording, and its command line; empty: not known.
struct Newcomer {
  pid_t pid = 0;
  std::string title;
};
// "recording processes 12, 13 and 4 more (gunicorn: worker)": processes that joined together, each with its
// command line. Not for none.
std::string newcomers_words(const std::vector<Newcomer>& fresh);
std::string newcomers_words(const std::vector<pid_t>& fresh);

}  // namespace phlox::cli
