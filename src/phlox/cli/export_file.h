// Writes a recording as a file of another format: shared by export and view.
#pragma once

#include <optional>
#include <string>

#include "phlox/base/result.h"
#include "phlox/cli/arguments.h"
#include "phlox/cli/talk.h"
#include "phlox/exporters/registry.h"

namespace phlox::cli {

struct ExportRequest {
  std::string file;    // the recording
  std::string output;  // "-" or "": standard output
  std::string title, page_size;
  bool force = false, source = false;
  InputArguments input;
  ViewArguments view;
};

// For a page (ExportOptions::with_inherited): `profile` as it was read, with the frames that forked children
// inherited. None: the format has only one form, or no child inherited any.
std::optional<profile::Profile> with_inherited_frames(const profile::Profile& profile,
                                                      const exporters::Format& format);

Result<void> export_file(const ExportRequest& request, const exporters::Format& format, Talk& talk);

}  // namespace phlox::cli
