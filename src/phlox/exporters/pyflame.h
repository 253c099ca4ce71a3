// The output of Pyflame 1.6 (github.com/uber-archive/pyflame), for scripts that were written for it:
// collapsed stacks of "file:function:line" frames, root first, with counts of samples; the timestamps of
// --flamechart; and its dump. Pure.
#pragma once

#include <ostream>

#include "phlox/profile/profile.h"

namespace phlox::exporters {

struct PyflameOptions {
  bool threads = false;       // every thread in every sample; otherwise only the GIL's holder
  bool exclude_idle = false;  // no "(idle)": samples in which no thread held the GIL
  bool line_numbers = true;
};

// One line for each stack, ordered by text. Samples that could not be read are "(failed)", as Pyflame's were.
void write_pyflame(const profile::Profile& profile, const PyflameOptions& options, std::ostream& out);
// Pairs of lines: microseconds since 1970, then the stack, with a ';' after each frame.
void write_pyflame_flamechart(const profile::Profile& profile, const PyflameOptions& options,
                              std::ostream& out);
// Each thread by Python's id, '*' at the GIL's holder, then its frames, leaf first.
void write_pyflame_dump(const profile::Profile& profile, const PyflameOptions& options, std::ostream& out);

}  // namespace phlox::exporters
