// Collapsed stacks: a line for each stack, root first, ';' between frames, then a number (flamegraph.pl,
// inferno, our own export, `py-spy record -f raw`). The number counts as samples: the format does not say
// what it counts.
#pragma once

#include "phlox/importers/importer.h"

namespace phlox::importers {

bool recognise_collapsed(std::span<const std::byte> head);
Result<ImportOutcome> import_collapsed(Input& input, const ImportOptions& options, profile::Sink& sink);

}  // namespace phlox::importers
