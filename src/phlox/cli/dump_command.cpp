#include <fmt/format.h>

#include "phlox/cli/attach_error.h"
#include "phlox/cli/attempts.h"
#include "phlox/cli/beside.h"
#include "phlox/cli/commands.h"
#include "phlox/cli/exit_status.h"
#include "phlox/cli/native_names.h"
#include "phlox/cli/output_file.h"
#include "phlox/cli/process_of.h"
#include "phlox/cli/values.h"
#include "phlox/profile/native_frames.h"
#include "phlox/profile/profile.h"
#include "phlox/report/dump.h"
#include "phlox/sampler/session/instant.h"
#include "phlox/target/process_state.h"
#include "phlox/target/source_file.h"

namespace phlox::cli {
namespace {

// The longest source file that is read for a few of its lines.
constexpr size_t kLongestSource = size_t{16} << 20;

Result<void> run(const CommandLine& line, Talk& talk) {
  const DumpArguments& arguments = line.dump;
  if (auto checked = check_container(!arguments.pid.empty(), arguments.container); !checked) return checked;
  if (arguments.pid.empty()) return fail(ErrorKind::usage, "dump which process?", "phlox dump -p PID");
  auto pid = process_of(line, arguments.pid, arguments.container);
  if (!pid) return fail(pid);
  // top -H, logs and debuggers name threads.
  if (const auto process = target::find_process_of(*pid); process && *process != *pid) {
    talk.note(fmt::format("{} is a thread of process {}: this is the dump of that process", *pid, *process));
    pid = *process;
  }
  const auto state = target::read_process_state(*pid);
  if (!state) return fail(state);
  if (auto possible = target::check_recordable(*state); !possible) return possible;
  for (const std::string& remark : target::remarks_on(*state)) talk.warn(remark);

  sampler::InstantOptions options;
  options.locals = arguments.locals;
  const auto native = native_source_of(arguments.native);
  if (!native) return fail(native);
  options.native = *native;
  if (options.native) options.unwind_cache = unwind_cache();
  profile::Profile look;
  NativeRows rows(look);
  std::vector<python::Attempt> attempts;
  const auto instant = sampler::look_once(*pid, options, rows, &attempts);
  say_attempts(attempts, talk);
  if (!instant) return tl::unexpected<Error>(explain_attach_error(instant.error(), *pid, "dump"));
  if (options.native) {
    auto missing = rows.name(instant->modules, debug_search_of(arguments.native));
    if (arguments.json || talk.says_details()) rows.advise(missing);
    for (const auto& row : missing) talk.detail(describe(row));
    profile::Choices choices;
    choices.all_frames = arguments.all_frames;
    profile::show_native_frames(look, choices);
  }
  if (!instant->warning.empty()) talk.warn(instant->warning);
  report::Dump dump;
  dump.python = instant->description;
  for (const sampler::FrameLocals& frame : instant->locals) {
    report::DumpVariables variables{frame.thread, frame.depth, {}};
    for (const python::Local& local : frame.variables)
      variables.variables.push_back({local.name, local.value, local.argument});
    dump.variables.push_back(std::move(variables));
  }
  for (const sampler::MissingThreads& row : instant->missing) {
    dump.missing.push_back({row.threads, row.why});
    talk.warn(report::describe(dump.missing.back()));
  }
  if (arguments.locals) talk.warn("variables may hold secrets: passwords, keys, personal data");

  auto output = OutputFile::open("-", {});
  if (!output) return fail(output);
  (*output)->stream() << (arguments.json ? report::dump_json(look, dump)
                                         : report::dump_text(look, dump, [&](const std::string& file) {
                                             return target::read_file_of(*pid, file, kLongestSource);
                                           }));
  if (auto committed = (*output)->commit(); !committed) return committed;
  Beside beside(*pid, [](pid_t one) { return fmt::format("one of them: phlox dump -p {}", one); });
  beside.look();
  for (const std::string& words : beside.news()) talk.warn(words);
  return {};
}

}  // namespace

int dump(const CommandLine& line, Talk& talk) {
  const auto done = run(line, talk);
  if (done) return kSuccess;
  talk.error(done.error());
  return exit_status(done.error().kind);
}

}  // namespace phlox::cli
