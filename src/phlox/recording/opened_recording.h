// Opening a recording that may come from anybody: read-only, with what SQLite would let a file do to us
// switched off, and only when its tables are plain ones. Rows are not looked at (tables.h). Never changes
// what it holds: a journal that its recorder was killed over is undone.
#pragma once

#include <string>
#include <string_view>

#include "phlox/base/result.h"
#include "phlox/recording/database.h"

namespace phlox::recording {

// Tables that older recordings, or most, are without.
struct OptionalTables {
  bool missing_names = false, label = false, wake = false, awaited = false;
};

struct OpenedRecording {
  Database database;  // in a transaction: one moment of a file that may be growing
  OptionalTables has;
};

// ErrorKind::input: not a recording, a newer or damaged one.
Result<OpenedRecording> open_recording(const std::string& path);

// What was committed goes from the log into the recording, which is one file then; a transaction that was cut
// off is undone. For one that nobody writes, and that is in nobody else's hands. Does nothing to other files.
void fold_log(const Place& place);

// What is wrong with a file.
tl::unexpected<Error> damaged(const std::string& path, std::string_view what);
// Of a recorder that was killed in its first moments, or a copy that lacks what was in the log.
tl::unexpected<Error> holds_nothing(const std::string& path);

}  // namespace phlox::recording
