// austin's text: "P<pid>;T<interpreter>:<tid>;<file>:<function>:<line>… <microseconds>", as austin up to 3
// and mojo2austin write it (README.md of austin 3.7, "Usage").
#pragma once

#include "phlox/importers/importer.h"

namespace phlox::importers {

bool recognise_austin_text(std::span<const std::byte> head);
Result<ImportOutcome> import_austin_text(Input& input, const ImportOptions& options, profile::Sink& sink);

}  // namespace phlox::importers
