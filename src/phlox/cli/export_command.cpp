#include <fmt/format.h>
#include <unistd.h>

#include "phlox/cli/commands.h"
#include "phlox/cli/export_file.h"
#include "phlox/cli/output_file.h"

namespace phlox::cli {
namespace {

Result<const exporters::Format*> format_for(const ExportArguments& arguments) {
  if (!arguments.format.empty())
    return exporters::find_format(arguments.format);  // one of the choices: the parser checked it
  if (arguments.output.empty() || arguments.output == "-") return exporters::find_format("collapsed");
  if (const exporters::Format* format = exporters::find_format_for_file(arguments.output)) return format;
  return fail(ErrorKind::usage, fmt::format("cannot tell from '{}' what to write", arguments.output),
              fmt::format("say it with -f: {}", exporters::format_names()));
}

Result<void> run_export(const ExportArguments& arguments, Talk& talk) {
  if (arguments.file.empty())
    return fail(ErrorKind::usage, "export which recording?", "phlox export app.phlox -f svg -o app.svg");
  auto format = format_for(arguments);
  if (!format) return fail(format);
  const bool to_stdout = arguments.output.empty() || arguments.output == "-";
  if (to_stdout && !(*format)->is_text && ::isatty(STDOUT_FILENO) == 1) {
    return fail(ErrorKind::usage, fmt::format("{} is not for a terminal", (*format)->name),
                fmt::format("phlox export {} -o profile{}", arguments.file, (*format)->extensions.front()));
  }
  if (auto written = export_file({arguments.file, arguments.output, arguments.title, arguments.page_size,
                                  arguments.force, arguments.source, arguments.input, arguments.view},
                                 **format, talk);
      !written)
    return written;
  if (!to_stdout) talk.note(fmt::format("wrote {}", with_size(arguments.output)));
  return {};
}

}  // namespace

int export_recording(const CommandLine& line, Talk& talk) {
  return status_of(run_export(line.export_, talk), talk);
}

}  // namespace phlox::cli
