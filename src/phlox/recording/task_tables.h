// Reads what tasks of event loops awaited: tables of their own, which older recordings lack.
#pragma once

#include <string>

#include "phlox/base/result.h"
#include "phlox/profile/profile.h"
#include "phlox/profile/task_time.h"

namespace phlox::recording {

// No rows: the recording has none. ErrorKind::input: a row is invalid; the message says which. What the rows
// refer to in other tables is not checked here: a growing recording may have more of it in a moment.
Result<profile::TaskRows> read_tasks(const std::string& path);

// Whether everything that they refer to is in `profile`, which was read after them. ErrorKind::input: it is
// not.
Result<void> check_tasks(const profile::TaskRows& rows, const profile::Profile& profile,
                         const std::string& path);

}  // namespace phlox::recording
