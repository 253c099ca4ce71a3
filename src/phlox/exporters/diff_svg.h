// The differential flame graph of `phlox diff -o diff.svg`: both recordings as one tree, red where a frame
// took more time, blue where it took less, grey where no difference was found. Widths are after's; a button
// switches to before's, where frames that vanished have their place.
#pragma once

#include <ostream>

#include "phlox/exporters/registry.h"

namespace phlox::exporters {

Result<void> write_diff_svg(const profile::Profile& before, const profile::Profile& after,
                            const view::Choices& choices, const ExportOptions& options, std::ostream& out);

}  // namespace phlox::exporters
