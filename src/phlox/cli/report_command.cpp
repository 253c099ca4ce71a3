#include <unistd.h>

#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "phlox/cli/commands.h"
#include "phlox/cli/output_file.h"
#include "phlox/cli/recordings.h"
#include "phlox/cli/source_files.h"
#include "phlox/cli/task_rows.h"
#include "phlox/cli/values.h"
#include "phlox/report/report.h"
#include "phlox/view/empty_view.h"
#include "phlox/view/prepared.h"
#include "phlox/view/together.h"

namespace phlox::cli {
namespace {

Result<void> print_report(const std::string& text, const ReportArguments& a) {
  auto output = OutputFile::open("-", {.inputs = a.files, .text = true});
  if (!output) return fail(output);
  (*output)->stream() << text;
  return (*output)->commit();
}

// Of several: all their rows, and in `options` a line of each. `all_tasks`: what tasks awaited.
Result<profile::Profile> read_all(const ReportArguments& a, report::ReportOptions& options,
                                  profile::TaskRows& all_tasks, Talk& talk) {
  std::optional<profile::Profile> all;
  const profile::Profile none;
  for (const std::string& file : a.files) {
    auto tasks = read_task_rows(file);
    if (!tasks) return fail(tasks);
    auto one = read_recording(file, a.input, talk);
    if (!one) return one;
    if (auto joined = join_task_rows(*tasks, *one, file); !joined) return fail(joined);
    view::prepare_tasks(*one, *tasks, options.choices);
    if (auto settled = settle_weight(options.choices, a.view, a.input, *one); !settled) return fail(settled);
    view::prepare_processes(*one, inherited_of(a.view));
    if (a.files.size() > 1) {
      auto row = report::recording_row(file, *one, options.choices);
      if (!row) return fail(row);
      options.recordings.push_back(*std::move(row));
    }
    if (a.files.size() == 1) {
      all_tasks = *std::move(tasks);
    } else {
      view::add_tasks(all_tasks, *tasks, all ? *all : none, *one);
    }
    if (all) {
      view::add_recording(*all, *one);
    } else {
      all = *std::move(one);
    }
  }
  return *std::move(all);
}

Result<void> run_report(const ReportArguments& a, Talk& talk) {
  if (a.files.empty()) return fail(ErrorKind::usage, "report on which recording?", "phlox report app.phlox");
  if (int(a.json) + int(a.markdown) + int(a.source) > 1) {
    return fail(ErrorKind::usage, "--json, --markdown and --source are one choice", "phlox report --help");
  }
  if (weighed_by(a.view) == Weighed::tasks) {
    return fail(ErrorKind::usage, "--weight await: the report has await time in tables of its own",
                "phlox report without --weight; phlox export --weight await writes a flame graph of it");
  }
  report::ReportOptions options;
  auto choices = choices_of(a.view);
  if (!choices) return fail(choices);
  options.choices = *choices;
  if (!a.top.empty()) {
    const auto top = parse_count("--top", a.top);
    if (!top) return fail(top);
    options.limit = *top;
  }
  if (!a.stall.empty()) {
    auto stall = parse_duration(a.stall);
    if (!stall) {
      stall.error().message = "--stall: " + stall.error().message;
      return fail(stall);
    }
    options.shortest_stall = *stall;
  }
  profile::TaskRows tasks;
  auto profile = read_all(a, options, tasks, talk);
  if (!profile) return fail(profile);
  options.tasks = &tasks;
  if (const auto nothing = view::why_empty(*profile, options.choices)) talk.warn(*nothing);
  if (auto ready = view::prepare_frames(*profile, options.choices); !ready) return fail(ready);
  const auto made = report::make_report(*profile, options);
  if (!made) return fail(made);
  if (a.json && talk.wants_text()) talk.text(report::report_text(*made));
  if (a.json) return print_report(report::report_json(*made), a);
  if (a.markdown) return print_report(report::report_markdown(*made), a);
  if (!a.source) return print_report(report::report_text(*made), a);
  // The files as they are here today: a recording may come from another machine, and the report says so where
  // a file is missing.
  const SourceFiles sources(*profile);
  return print_report(
      report::report_source(*made, [&](std::string_view file) { return sources.read(std::string(file)); }),
      a);
}

}  // namespace

int report(const CommandLine& line, Talk& talk) {
  return status_of(run_report(line.report, talk), talk);
}

}  // namespace phlox::cli
