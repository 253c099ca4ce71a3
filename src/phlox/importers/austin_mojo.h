// austin's binary format, MOJO, versions 1 to 4 (austin 3.4 to 4.1): a stream of events.
// https://github.com/P403n1x87/austin/wiki/The-MOJO-file-format, and the files of the program itself.
#pragma once

#include "phlox/importers/importer.h"

namespace phlox::importers {

bool recognise_austin_mojo(std::span<const std::byte> head);
Result<ImportOutcome> import_austin_mojo(Input& input, const ImportOptions& options, profile::Sink& sink);

}  // namespace phlox::importers
