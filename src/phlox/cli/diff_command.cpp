#include <fmt/format.h>

#include <future>
#include <memory>
#include <string>
#include <vector>

#include "phlox/cli/commands.h"
#include "phlox/cli/exit_status.h"
#include "phlox/cli/output_file.h"
#include "phlox/cli/recordings.h"
#include "phlox/cli/values.h"
#include "phlox/exporters/diff_svg.h"
#include "phlox/exporters/html.h"
#include "phlox/exporters/registry.h"
#include "phlox/profile/empty_view.h"
#include "phlox/profile/native_frames.h"
#include "phlox/profile/process_names.h"
#include "phlox/profile/sampled_events.h"
#include "phlox/profile/time_labels.h"
#include "phlox/profile/unfinished.h"
#include "phlox/profile/work.h"
#include "phlox/report/diff.h"

namespace phlox::cli {
namespace {

Result<void> print(const std::string& text, const DiffArguments& a) {
  auto output = OutputFile::open("-", {{}, {a.before, a.after}});
  if (!output) return fail(output);
  (*output)->stream() << text;
  return (*output)->commit();
}

// One weight for both: time only where both have it, and what an event counted where it is one event.
Result<void> settle_for_both(profile::Choices& choices, const DiffArguments& a,
                             const profile::Profile& before, const profile::Profile& after) {
  profile::Choices of_after = choices;
  if (auto settled = settle_weight(choices, a.view, a.input, before); !settled) return settled;
  if (auto settled = settle_weight(of_after, a.view, a.input, after); !settled) return settled;
  const std::string one = profile::shown_event(before).name, other = profile::shown_event(after).name;
  const bool same =
      choices.weight == of_after.weight && (!profile::is_of_event(choices.weight) || one == other);
  if (same) return {};
  if (!a.view.weight.empty()) {
    return fail(ErrorKind::usage, fmt::format("{} counts {}, {} counts {}", a.before, one, a.after, other),
                "--event chooses one that both have; --weight samples compares samples");
  }
  choices.weight = profile::Weight::samples;
  return {};
}

// The status: kThreshold when a condition of --fail-if holds, kUnknownFunction when one never can.
Result<int> run(const DiffArguments& a, Talk& talk) {
  if (a.before.empty() || a.after.empty())
    return fail(ErrorKind::usage, "compare which two recordings?", "phlox diff before.phlox after.phlox");
  if (a.json && a.markdown)
    return fail(ErrorKind::usage, "--json and --markdown are one choice", "phlox diff --help");
  report::DiffOptions options;
  auto choices = choices_of(a.view);
  if (!choices) return fail(choices);
  options.choices = *choices;
  if (!a.top.empty()) {
    const auto top = parse_count("--top", a.top);
    if (!top) return fail(top);
    options.limit = *top;
  }
  std::vector<report::Condition> conditions;
  for (const std::string& text : a.fail_if) {
    auto condition = report::parse_condition(text);
    if (!condition) return fail(condition);
    conditions.push_back(*std::move(condition));
  }
  std::unique_ptr<OutputFile> picture;
  auto* write = exporters::write_diff_svg;
  if (!a.output.empty()) {
    const exporters::Format* format = exporters::find_format_for_file(a.output);
    if (format == nullptr || (format->name != "svg" && format->name != "html")) {
      return fail(ErrorKind::usage, fmt::format("cannot write a difference as '{}'", a.output),
                  "a page with both recordings: -o diff.html; a differential flame graph: -o diff.svg");
    }
    write = format->name == "svg" ? exporters::write_diff_svg : exporters::write_diff_page;
    auto opened = OutputFile::open(a.output, {target::calling_user(), {a.before, a.after}, a.force});
    if (!opened) return fail(opened);
    picture = *std::move(opened);
  }
  // Side by side: reading a million samples takes half a second. Without leave to start a thread, one by one.
  auto reading = std::async([&] { return read_recording(a.before, a.input, talk); });
  auto after = read_recording(a.after, a.input, talk);
  auto before = reading.get();
  if (!before) return fail(before);
  if (!after) return fail(after);
  if (auto settled = settle_for_both(options.choices, a, *before, *after); !settled) return fail(settled);
  for (const auto& [name, side] : {std::pair(&a.before, &*before), std::pair(&a.after, &*after)}) {
    if (const auto nothing = profile::why_empty(*side, options.choices))
      talk.warn(fmt::format("{}: {}", *name, *nothing));
    if (const auto unfinished = profile::unfinished_words(*side); !unfinished.empty())
      talk.note(fmt::format("{}: {}", *name, unfinished));
  }
  for (profile::Profile* side : {&*before, &*after}) {
    profile::show_process_names(*side);
    profile::show_forks(*side, inherited_of(a.view));
    profile::show_native_frames(*side, options.choices);
  }
  for (profile::Profile* side : {&*before, &*after}) {
    if (auto labelled = profile::show_time_labels(*side, options.choices); !labelled) return fail(labelled);
  }
  const auto made = report::make_diff(*before, *after, options);
  if (!made) return fail(made);
  if (picture) {
    std::vector<std::string> remarks;
    exporters::ExportOptions export_options;
    export_options.remarks = &remarks;
    if (auto written = write(*before, *after, options.choices, export_options, picture->stream()); !written)
      return fail(written);
    for (const std::string& remark : remarks) talk.warn(remark);
    if (auto committed = picture->commit(); !committed) return fail(committed);
    talk.note(fmt::format("wrote {}", with_size(a.output)));
  }
  // With a picture and no word of another format the picture is what was asked for.
  if (a.json || a.markdown || !picture) {
    const std::string text = a.json       ? report::diff_json(*made)
                             : a.markdown ? report::diff_markdown(*made)
                                          : report::diff_text(*made);
    if (auto printed = print(text, a); !printed) return fail(printed);
  }
  int status = kSuccess;
  for (const report::Condition& condition : conditions) {
    const auto result = report::check_condition(*made, condition);
    if (!result) return fail(result);
    if (!result->found) {
      // A gate that can never close.
      talk.error({ErrorKind::usage, fmt::format("--fail-if: {}", result->text),
                  result->alike.empty() ? "functions are named as in phlox report; * stands for anything"
                                        : fmt::format("did you mean {}?", fmt::join(result->alike, ", "))});
      status = kUnknownFunction;
      continue;
    }
    if (result->holds && status == kSuccess) status = kThreshold;
    result->holds ? talk.warn(result->text) : talk.note(result->text);
  }
  return status;
}

}  // namespace

int diff(const CommandLine& line, Talk& talk) {
  const auto done = run(line.diff, talk);
  if (done) return *done;
  talk.error(done.error());
  return exit_status(done.error().kind);
}

}  // namespace phlox::cli
