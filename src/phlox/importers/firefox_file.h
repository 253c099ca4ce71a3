// The Firefox Profiler's processed profile, of any version: its own downloads, samply's, Tachyon's --gecko,
// our export. (docs-developer/processed-profile-format.md and CHANGELOG-formats.md of the profiler.)
#pragma once

#include "phlox/importers/importer.h"

namespace phlox::importers {

bool recognise_firefox(std::span<const std::byte> head);
Result<ImportOutcome> import_firefox(Input& input, const ImportOptions& options, profile::Sink& sink);

}  // namespace phlox::importers
