// speedscope's own format, version 0.0.1: sampled and evented profiles, one for each thread.
#pragma once

#include "phlox/importers/importer.h"

namespace phlox::importers {

bool recognise_speedscope(std::span<const std::byte> head);
Result<ImportOutcome> import_speedscope(Input& input, const ImportOptions& options, profile::Sink& sink);

}  // namespace phlox::importers
