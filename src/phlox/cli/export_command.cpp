#include <fmt/format.h>
#include <unistd.h>

#include "phlox/cli/commands.h"
#include "phlox/cli/exit_status.h"
#include "phlox/cli/output_file.h"
#include "phlox/cli/recordings.h"
#include "phlox/cli/values.h"
#include "phlox/exporters/registry.h"
#include "phlox/profile/empty_view.h"
#include "phlox/profile/native_frames.h"

namespace phlox::cli {
namespace {

Result<const exporters::Format*> format_for(const ExportArguments& arguments) {
  if (!arguments.format.empty())
    return exporters::find_format(arguments.format);  // one of the choices: the parser checked
  if (arguments.output.empty() || arguments.output == "-") return exporters::find_format("collapsed");
  if (const exporters::Format* format = exporters::find_format_for_file(arguments.output)) return format;
  return fail(ErrorKind::usage, fmt::format("cannot tell from '{}' what to write", arguments.output),
              fmt::format("say it with -f: {}", exporters::format_names()));
}

Result<void> run(const ExportArguments& arguments, Talk& talk) {
  if (arguments.file.empty())
    return fail(ErrorKind::usage, "export which recording?", "phlox export app.phlox -f svg -o app.svg");
  auto format = format_for(arguments);
  if (!format) return fail(format);
  auto choices = choices_of(arguments.view);
  if (!choices) return fail(choices);
  const bool to_stdout = arguments.output.empty() || arguments.output == "-";
  if (to_stdout && (*format)->name == "svg" && ::isatty(STDOUT_FILENO) == 1) {
    return fail(ErrorKind::usage, "a picture is not for a terminal",
                "phlox export " + arguments.file + " -o flame.svg");
  }
  auto output =
      OutputFile::open(arguments.output, {target::calling_user(), {arguments.file}, arguments.force});
  if (!output) return fail(output);
  auto profile = read_recording(arguments.file, arguments.input, talk);
  if (!profile) return fail(profile);
  if (arguments.view.show.empty()) *choices = choices_for(**format, *choices);
  settle_weight(*choices, arguments.view, *profile);
  if (const auto nothing = profile::why_empty(*profile, *choices)) talk.warn(*nothing);
  profile::show_native_frames(*profile, *choices);
  if (const auto waiting = left_out(*profile, *choices)) talk.note(*waiting);
  exporters::ExportOptions options;
  options.title = arguments.title;
  if (auto written = (*format)->write(*profile, *choices, options, (*output)->stream()); !written)
    return fail(written);
  if (auto committed = (*output)->commit(); !committed) return committed;
  if (!to_stdout) talk.note(fmt::format("wrote {}", with_size(arguments.output)));
  return {};
}

}  // namespace

int export_recording(const CommandLine& line, Talk& talk) {
  const auto done = run(line.export_, talk);
  if (done) return kSuccess;
  talk.error(done.error());
  return exit_status(done.error().kind);
}

}  // namespace phlox::cli
