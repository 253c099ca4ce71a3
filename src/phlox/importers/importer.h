// What every importer takes and gives. An importer turns the bytes of one foreign format into rows of the
// model, as they come; what the format does not know stays empty. It prints nothing and looks at no process.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "phlox/base/result.h"
#include "phlox/importers/input.h"
#include "phlox/importers/module_files.h"
#include "phlox/profile/native_module.h"
#include "phlox/profile/sink.h"

namespace phlox::importers {

struct ImportOptions {
  // Of a recording of several, the one by whose samples time is shared out, and which is shown first; empty:
  // the first, a clock before others.
  std::string event;
  FileSearch files;
};

struct ImportOutcome {
  uint64_t samples = 0;
  std::vector<profile::NativeModule>
      modules;                        // that native frames name: their functions are still to be named
  std::string summary;                // a line: what it was, and how its stacks came out
  std::vector<std::string> warnings;  // what was lost, and why
  std::vector<std::string> details;
};

using ImportFunction = Result<ImportOutcome> (*)(Input&, const ImportOptions&, profile::Sink&);

}  // namespace phlox::importers
