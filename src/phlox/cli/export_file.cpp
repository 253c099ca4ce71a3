#include "phlox/cli/export_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "phlox/cli/destination.h"
#include "phlox/cli/output_file.h"
#include "phlox/cli/recordings.h"
#include "phlox/cli/source_files.h"
#include "phlox/cli/task_rows.h"
#include "phlox/cli/values.h"
#include "phlox/profile/unfinished.h"
#include "phlox/view/await_time.h"
#include "phlox/view/empty_view.h"
#include "phlox/view/endpoints.h"
#include "phlox/view/forks.h"
#include "phlox/view/prepared.h"

namespace phlox::cli {

namespace {

Result<exporters::ExportOptions> options_of(const ExportRequest& request, const exporters::Format& format) {
  exporters::ExportOptions options;
  options.title = request.title;
  if (!request.page_size.empty()) {
    auto bytes = parse_page_size(request.page_size);
    if (!bytes) return fail(bytes);
    options.page_bytes = *bytes;
  }
  if (request.source) {
    if (format.name != "html")
      return fail(ErrorKind::usage, fmt::format("--source is for a page, and this is {}", format.name),
                  "phlox export app.phlox --source -o app.html");
  }
  return options;
}

// `profile` as it was read, with the frames that forked children inherited. None: the format has only one
// form, or no child inherited any.
std::optional<profile::Profile> with_inherited_frames(const profile::Profile& profile,
                                                      const exporters::Format& format) {
  if (format.name != "html" || profile.processes().size() < 2 || !profile.samples_of_others().empty())
    return {};
  profile::Profile all = profile;
  view::prepare_processes(all, view::Inherited::shown);
  const bool any = std::any_of(all.frames().begin(), all.frames().end(), view::is_fork_marker);
  return any ? std::optional(std::move(all)) : std::nullopt;
}

}  // namespace

Result<std::optional<profile::Profile>> prepare_export(profile::Profile& profile,
                                                       const profile::TaskRows& tasks, Weighed weighed,
                                                       const exporters::Format& format,
                                                       const view::Choices& choices,
                                                       view::Inherited inherited, const std::string& file) {
  auto with_inherited = with_inherited_frames(profile, format);
  view::prepare_processes(profile, with_inherited ? view::Inherited::hidden : inherited);
  for (profile::Profile* one : {&profile, with_inherited ? &*with_inherited : nullptr}) {
    if (one == nullptr) continue;
    if (auto ready = view::prepare_frames(*one, choices); !ready) return fail(ready);
    if (auto added = add_await_time(*one, tasks, weighed, format, choices, file); !added) return fail(added);
    if (choices.by.endpoint) view::show_endpoints(*one);
  }
  return with_inherited;
}

Result<void> export_file(const ExportRequest& request, const exporters::Format& format, Talk& talk) {
  auto choices = choices_of(request.view);
  if (!choices) return fail(choices);
  auto options = options_of(request, format);
  if (!options) return fail(options);
  auto output = OutputFile::open(request.output, {.owner = recording_owner(),
                                                  .inputs = {request.file},
                                                  .force = request.force,
                                                  .secret = request.source});
  if (!output) return fail(output);
  const Weighed weighed = weighed_by(request.view);
  if (auto possible = check_weighed(weighed, format); !possible) return possible;
  auto tasks = read_task_rows(request.file);
  if (!tasks) return fail(tasks);
  auto profile = read_recording(request.file, request.input, talk);
  if (!profile) return fail(profile);
  if (auto joined = join_task_rows(*tasks, *profile, request.file); !joined) return joined;
  view::prepare_tasks(*profile, *tasks, *choices);
  if (const auto unfinished = profile::unfinished_words(*profile); !unfinished.empty()) talk.note(unfinished);
  if (request.view.show.empty()) *choices = choices_for(format, *choices);
  if (auto settled = settle_weight(*choices, request.view, request.input, *profile); !settled) return settled;
  if (weighed == Weighed::threads || format.awaits == exporters::Awaits::page) {
    if (const auto nothing = view::why_empty(*profile, *choices)) talk.warn(*nothing);
  }
  auto with_inherited =
      prepare_export(*profile, *tasks, weighed, format, *choices, inherited_of(request.view), request.file);
  if (!with_inherited) return fail(with_inherited);
  if (view::shows_await_time(*profile)) {
    if (const auto nothing = view::why_empty(*profile, *choices)) talk.warn(*nothing);
  }
  options->with_inherited = *with_inherited ? &**with_inherited : nullptr;
  options->show_inherited = request.view.inherited_frames;
  options->weigh_awaits = weighed == Weighed::tasks;
  options->tasks = &*tasks;
  if (const auto waiting = left_out(*profile, *choices)) talk.note(*waiting);
  const SourceFiles sources(*profile);
  if (request.source) options->source = [&](const std::string& file) { return sources.read(file); };
  std::vector<std::string> remarks, notes;
  options->remarks = &remarks;
  options->notes = &notes;
  if (auto written = format.write(*profile, *choices, *options, (*output)->stream()); !written)
    return fail(written);
  for (const std::string& remark : remarks) talk.warn(remark);
  for (const std::string& note : notes) talk.note(note);
  return (*output)->commit();
}

}  // namespace phlox::cli
