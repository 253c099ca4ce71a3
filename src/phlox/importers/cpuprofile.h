// Chrome's and Node's .cpuprofile: what the inspector's Profiler.stop gives.
#pragma once

#include "phlox/importers/importer.h"

namespace phlox::importers {

bool recognise_cpuprofile(std::span<const std::byte> head);
Result<ImportOutcome> import_cpuprofile(Input& input, const ImportOptions& options, profile::Sink& sink);

}  // namespace phlox::importers
