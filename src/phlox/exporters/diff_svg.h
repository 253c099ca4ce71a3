// The differential flame graph of `phlox diff -o diff.svg`: both recordings as one tree, red where the share
// of a frame grew, blue where it shrank, grey where the change may be chance. Widths are after's; a button
// turns them to before's, where frames that vanished have their place.
#pragma once

#include <ostream>

#include "phlox/exporters/registry.h"

namespace phlox::exporters {

Result<void> write_diff_svg(const profile::Profile& before, const profile::Profile& after,
                            const profile::Choices& choices, const ExportOptions& options, std::ostream& out);

}  // namespace phlox::exporters
