// Imports the files of `perf record`.
#pragma once

#include "phlox/importers/importer.h"

namespace phlox::importers {

Result<ImportOutcome> import_perf_data(Input& input, const ImportOptions& options, profile::Sink& sink);

}  // namespace phlox::importers
