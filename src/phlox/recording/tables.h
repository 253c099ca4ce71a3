// Reads the rows of a recording's tables into a profile: the meaning of each column, and its valid values.
// The file was opened, and its tables found to be plain ones (opened_recording.h).
#pragma once

#include <string>

#include "phlox/base/result.h"
#include "phlox/profile/profile.h"
#include "phlox/recording/opened_recording.h"

namespace phlox::recording {

// `path` is for messages. ErrorKind::input: a row is invalid; the message says which.
Result<profile::Profile> read_tables(const OpenedRecording& recording, const std::string& path);

}  // namespace phlox::recording
