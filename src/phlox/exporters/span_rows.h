// One row for each interval, for data frames, databases and jq: JSON lines and CSV, with the same columns.
// Rows are in the order of the recording. docs/formats.md is the reference.
#pragma once

#include <ostream>

#include "phlox/base/result.h"
#include "phlox/profile/profile.h"
#include "phlox/view/view.h"

namespace phlox::exporters {

// An object on each line; "stack" is an array, root first.
Result<void> write_json_lines(const profile::Profile& profile, const view::Choices& choices,
                              std::ostream& out);
// A header, then rows with commas (RFC 4180; no newline within a row). "stack" is written as in the collapsed
// format; an unknown value is empty.
Result<void> write_csv(const profile::Profile& profile, const view::Choices& choices, std::ostream& out);

}  // namespace phlox::exporters
