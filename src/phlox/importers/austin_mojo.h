// austin's binary format, MOJO, versions 1 to 3 (austin 3.4 to 4.0): a stream of events.
// https://github.com/P403n1x87/austin/wiki/The-MOJO-file-format, and what the program itself writes.
#pragma once

#include "phlox/importers/importer.h"

namespace phlox::importers {

bool recognise_austin_mojo(std::span<const std::byte> head);
Result<ImportOutcome> import_austin_mojo(Input& input, const ImportOptions& options, profile::Sink& sink);

}  // namespace phlox::importers
