// Chrome's and Node's .cpuprofile: the result of the inspector's Profiler.stop.
#pragma once

#include "phlox/importers/importer.h"

namespace phlox::importers {

bool recognise_cpuprofile(std::span<const std::byte> head);
Result<ImportOutcome> import_cpuprofile(Input& input, const ImportOptions& options, profile::Sink& sink);

}  // namespace phlox::importers
