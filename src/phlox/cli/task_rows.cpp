#include "phlox/cli/task_rows.h"

#include <fmt/format.h>

#include <filesystem>
#include <limits>
#include <system_error>

#include "phlox/recording/reader.h"
#include "phlox/recording/task_tables.h"
#include "phlox/view/await_time.h"
#include "phlox/view/loop_threads.h"
#include "phlox/view/shown_event.h"

namespace phlox::cli {

Weighed weighed_by(const ViewArguments& view) {
  return view.weight == view::kAwaitTime ? Weighed::tasks : Weighed::threads;
}

Result<profile::TaskRows> read_task_rows(const std::string& path) {
  // Opening a pipe and closing it again would end the program that writes into it.
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error) || !recording::is_recording(path))
    return profile::TaskRows();
  return recording::read_tasks(path);
}

Result<void> join_task_rows(profile::TaskRows& rows, const profile::Profile& profile,
                            const std::string& path) {
  if (auto sound = recording::check_tasks(rows, profile, path); !sound) return sound;
  view::name_loop_threads(rows, profile);
  return {};
}

Result<void> check_weighed(Weighed weighed, const exporters::Format& format) {
  if (weighed == Weighed::threads || format.awaits != exporters::Awaits::never) return {};
  std::string others;
  for (const exporters::Format& other : exporters::formats()) {
    if (other.awaits == exporters::Awaits::never) continue;
    others += fmt::format("{}{}", others.empty() ? "" : ", ", other.name);
  }
  return fail(ErrorKind::usage,
              fmt::format("--weight await: {} shows what happened when, and await time is a sum of the whole "
                          "recording",
                          format.name),
              "formats with await time: " + others);
}

Result<void> add_await_time(profile::Profile& profile, const profile::TaskRows& rows, Weighed weighed,
                            const exporters::Format& format, const view::Choices& choices,
                            const std::string& path) {
  const bool whole = choices.from <= 0 && choices.to == std::numeric_limits<Nanoseconds>::max() &&
                     !choices.label_regex && !choices.by.label && !choices.trace;
  const bool alongside =
      weighed == Weighed::threads && format.awaits >= exporters::Awaits::alongside && whole;
  if (weighed == Weighed::threads && !alongside) return {};
  const bool added = view::add_await_time(profile, rows);
  if (weighed == Weighed::threads || (added && format.awaits == exporters::Awaits::page)) return {};
  if (!added)
    return fail(ErrorKind::usage,
                fmt::format("--weight await: {} has no await time: no task in it waited", path),
                "phlox record reads the tasks of asyncio and trio");
  return view::show_event(profile, view::kAwaitTime);
}

}  // namespace phlox::cli
