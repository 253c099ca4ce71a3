// The binary format of Tachyon, CPython's own sampling profiler (python -m profiling.sampling --binary, 3.15
// and later): InternalDocs/profiling_binary_format.md of CPython, version 1.
#pragma once

#include "phlox/importers/importer.h"

namespace phlox::importers {

bool recognise_tachyon(std::span<const std::byte> head);
Result<ImportOutcome> import_tachyon(Input& input, const ImportOptions& options, profile::Sink& sink);

}  // namespace phlox::importers
