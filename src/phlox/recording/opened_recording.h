// Opens a recording of any origin: read-only, with the dangerous features of SQLite switched off, and only if
// its tables are plain ones. Does not read rows (tables.h). Never changes its contents: a journal that a
// killed recorder left is undone.
#pragma once

#include <string>
#include <string_view>

#include "phlox/base/result.h"
#include "phlox/recording/database.h"
#include "phlox/recording/schema.h"

namespace phlox::recording {

// Tables that older recordings, or most, lack.
struct OptionalTables {
  bool missing_names = false, label = false, waker = false, wait_targets = false, trace_time = false;
};

struct OpenedRecording {
  Database database;  // in a transaction: one moment of a file that may be growing
  OptionalTables has;
  Names names;  // of its format
};

// ErrorKind::input: no recording, or a newer or damaged one.
Result<OpenedRecording> open_recording(const std::string& path);

// Moves committed data from the log into the recording, which is then one file; an interrupted transaction is
// undone. For a recording that no process writes or reads. Does nothing to other files.
void fold_log(const Place& place);

// The error of a file.
tl::unexpected<Error> damaged(const std::string& path, std::string_view what);
// For a recorder that was killed in its first moments, or a copy without its log.
tl::unexpected<Error> holds_nothing(const std::string& path);

}  // namespace phlox::recording
