// The input and result of every importer. An importer turns the bytes of one foreign format into rows of the
// model as they come; facts that the format lacks stay empty. It prints nothing and opens no process.
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
  // In a recording of several events, the one whose samples divide time, and which is shown first; empty: the
  // first, a clock before others.
  std::string event;
  FileSearch files;
};

struct ImportOutcome {
  uint64_t samples = 0;
  std::vector<profile::NativeModule> modules;  // modules of native frames, whose functions have no names yet
  std::string summary;                         // a line: the kind of file, and the quality of its stacks
  std::vector<std::string> warnings;           // what was lost, and why
  std::vector<std::string> details;
};

using ImportFunction = Result<ImportOutcome> (*)(Input&, const ImportOptions&, profile::Sink&);

}  // namespace phlox::importers
