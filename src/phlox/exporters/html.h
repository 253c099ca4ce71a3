// The page people keep: one HTML file with the recording's data as packed columns, one script, one style, and
// a policy that forbids every request. What is in it and how it is read: web/README.md.
#pragma once

#include <ostream>

#include "phlox/base/result.h"
#include "phlox/exporters/registry.h"

namespace phlox::exporters {

// The choices say what goes in; their weight and `by` are what the page begins with.
Result<void> write_page(const profile::Profile& profile, const profile::Choices& choices,
                        const ExportOptions& options, std::ostream& out);

// `phlox diff -o diff.html`: both recordings in one page that begins with what differs.
Result<void> write_diff_page(const profile::Profile& before, const profile::Profile& after,
                             const profile::Choices& choices, const ExportOptions& options,
                             std::ostream& out);

}  // namespace phlox::exporters
