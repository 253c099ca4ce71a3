// What tasks awaited, for commands that show a recording: read in addition to it, and added to its samples.
#pragma once

#include <string>

#include "phlox/base/result.h"
#include "phlox/cli/arguments.h"
#include "phlox/exporters/registry.h"
#include "phlox/profile/task_time.h"

namespace phlox::cli {

// Whose time is weighed: --weight await is the tasks'.
enum class Weighed { threads, tasks };
Weighed weighed_by(const ViewArguments& view);

// No rows: the recording has none, or another tool made it. Before the recording itself is read, which is
// then of a later moment and has all that they refer to: join_task_rows().
Result<profile::TaskRows> read_task_rows(const std::string& path);

// Once the recording is read: its rows refer only to what `profile` has, and its loops have their threads.
Result<void> join_task_rows(profile::TaskRows& rows, const profile::Profile& profile,
                            const std::string& path);

// ErrorKind::usage: the format has no place for the tasks' time, which was asked for.
Result<void> check_weighed(Weighed weighed, const exporters::Format& format);

// Adds them to what `format` shows: in place of the threads' time if that was requested, else next to it
// where the format has room, unless `choices` ask for a part of the time. After all that changes samples.
// ErrorKind::usage: they were asked for, and there are none. `rows`: as join_task_rows() leaves them.
// `path`: of the recording, for messages.
Result<void> add_await_time(profile::Profile& profile, const profile::TaskRows& rows, Weighed weighed,
                            const exporters::Format& format, const view::Choices& choices,
                            const std::string& path);

}  // namespace phlox::cli
