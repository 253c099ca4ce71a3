// The page: one HTML file with the recording's data as packed columns, one script, one style, and a policy
// that forbids every request. web/README.md describes its contents and its reading.
#pragma once

#include <ostream>

#include "phlox/base/result.h"
#include "phlox/exporters/registry.h"

namespace phlox::exporters {

// The choices select the contents; their weight and `by` are what the page shows first.
Result<void> write_page(const profile::Profile& profile, const view::Choices& choices,
                        const ExportOptions& options, std::ostream& out);

// `phlox diff -o diff.html`: both recordings in one page that begins with the differences.
Result<void> write_diff_page(const profile::Profile& before, const profile::Profile& after,
                             const view::Choices& choices, const ExportOptions& options, std::ostream& out);

}  // namespace phlox::exporters
