// Writes a recording as a file of another format: shared by export and view.
#pragma once

#include <optional>
#include <string>

#include "phlox/base/result.h"
#include "phlox/cli/arguments.h"
#include "phlox/cli/talk.h"
#include "phlox/cli/task_rows.h"
#include "phlox/exporters/registry.h"
#include "phlox/view/forks.h"

namespace phlox::cli {

struct ExportRequest {
  std::string file;    // the recording
  std::string output;  // "-" or "": standard output
  std::string title, page_size;
  bool force = false, source = false;
  InputArguments input;
  ViewArguments view;
};

// Prepares `profile`, as it was read from `file`, to be written. For a page (ExportOptions::with_inherited),
// returns it with the frames that forked children inherited, if any did.
Result<std::optional<profile::Profile>> prepare_export(profile::Profile& profile,
                                                       const profile::TaskRows& tasks, Weighed weighed,
                                                       const exporters::Format& format,
                                                       const view::Choices& choices,
                                                       view::Inherited inherited, const std::string& file);

Result<void> export_file(const ExportRequest& request, const exporters::Format& format, Talk& talk);

}  // namespace phlox::cli
