// Google's profile.proto, gzipped or plain: the format of Go, pprof's libraries, Pyroscope and Parca.
#pragma once

#include "phlox/importers/importer.h"

namespace phlox::importers {

bool recognise_pprof(std::span<const std::byte> head);
Result<ImportOutcome> import_pprof(Input& input, const ImportOptions& options, profile::Sink& sink);

}  // namespace phlox::importers
