// The text that `perf script` prints: a line for each sample, then its frames, leaf first. With the fields
// that it prints by itself, or those of -F.
#pragma once

#include "phlox/importers/importer.h"

namespace phlox::importers {

bool recognise_perf_script(std::span<const std::byte> head);
Result<ImportOutcome> import_perf_script(Input& input, const ImportOptions& options, profile::Sink& sink);

}  // namespace phlox::importers
