#include "phlox/cli/record_request.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "phlox/cli/process_of.h"
#include "phlox/cli/values.h"
#include "phlox/process/pause_limit.h"
#include "phlox/sampler/kernel/kernel_capture.h"

namespace phlox::cli {

Result<RecordRequest> record_request_of(const CommandLine& line) {
  const RecordArguments& a = line.record;
  RecordRequest request;
  if (auto checked = check_container(!a.pids.empty(), a.container); !checked) return fail(checked);
  auto selection = Selection::of(a.selection);
  if (!selection) return fail(selection);
  request.selection = *std::move(selection);
  if (line.has_program == (!a.pids.empty() || request.selection)) {
    return fail(ErrorKind::usage,
                line.has_program ? "give running processes or a program to start, not both" : "record what?",
                "phlox record -p PID, or: phlox record --name REGEX, or: phlox record -- python3 app.py");
  }
  for (const std::string& text : a.pids) {
    auto pid = process_of(line, text, a.container);
    if (!pid) return fail(pid);
    if (std::find(request.pids.begin(), request.pids.end(), *pid) == request.pids.end())
      request.pids.push_back(*pid);
  }
  request.options.follow = !a.no_follow;
  request.program = line.program;
  if (line.has_program && request.program.empty()) {
    return fail(ErrorKind::usage, "no program after --", "phlox record -- python3 app.py");
  }
  if (!a.rate.empty()) {
    auto rate = named(line, "--rate", parse_rate(a.rate));
    if (!rate) return fail(rate);
    request.options.rate_hz = *rate;
  } else {
    request.options.rate_is_limit = true;
  }
  if (!a.stall.empty()) {
    auto stall = named(line, "--stall", parse_duration(a.stall));
    if (!stall) return fail(stall);
    request.shortest_stall = *stall;
  }
  if (!a.duration.empty()) {
    auto duration = named(line, "--duration", parse_duration(a.duration));
    if (!duration) return fail(duration);
    request.options.duration = *duration;
  }
  if (!a.max_pause.empty()) {
    auto longest = named(line, "--max-pause", parse_duration(a.max_pause));
    if (!longest) return fail(longest);
    process::PauseLimit::set_longest(*longest);
  }
  if (!a.keep.empty()) {
    auto age = named(line, "--keep", parse_duration(a.keep));
    if (!age) return fail(age);
    request.destination.retention.age = *age;
  }
  if (!a.max_size.empty()) {
    auto bytes = named(line, "--max-size", parse_size(a.max_size));
    if (!bytes) return fail(bytes);
    if (*bytes < recording::Writer::kLeastBytes)
      return fail(ErrorKind::usage,
                  fmt::format("--max-size: {} is too small for a recording and its log", a.max_size),
                  "at least --max-size 10M");
    request.destination.retention.bytes = *bytes;
  }
  request.destination.append = a.append;
  auto overhead =
      named(line, "--max-overhead", parse_overhead(a.max_overhead.empty() ? "2" : a.max_overhead));
  if (!overhead) return fail(overhead);
  request.options.max_overhead_percent = *overhead;
  auto mode = parse_mode(a.mode, a.hands_off);
  if (!mode) return fail(mode);
  request.options.mode = *mode;
  auto native = native_source_of(a.native);
  if (!native) return fail(native);
  request.options.native = *native;
  if (*mode == sampler::Mode::kernel) {
    if (*native && *native != sampler::NativeSource::automatic) {
      return fail(ErrorKind::usage,
                  "--native-source does not apply to --way kernel, which reads native frames itself",
                  "without --native-source, or without --way kernel");
    }
    // Checked before a program is started.
    if (auto possible = sampler::check_kernel_capture("record --way kernel"); !possible)
      return fail(possible);
  }
  if (request.options.native) request.options.unwind_cache = unwind_cache();
  Destination::Options& destination = request.destination;
  destination.native = request.options.native.has_value();
  destination.debug_search = debug_search_of(a.native);
  destination.force = a.force;
  destination.source = a.source;
  auto output = named(line, "--output", parse_output(a.output));
  if (!output) return fail(output);
  destination.output = *output;
  auto choices = choices_of(a.view);
  if (!choices) return fail(choices);
  if (choices->by.label) {
    return fail(ErrorKind::usage, "--by label: a recording has no labels until it has ended",
                "phlox label RECORDING FILE, then phlox export --by label");
  }
  if (profile::is_of_event(choices->weight)) {
    return fail(ErrorKind::usage, "--weight event: phlox record records no events",
                "events are what perf record and pprof count: phlox report perf.data --event NAME");
  }
  destination.choices = *choices;
  destination.weighed = weighed_by(a.view);
  request.tasks = !a.no_async;
  if (a.no_async && destination.weighed == Weighed::tasks)
    return fail(ErrorKind::usage, "--weight await shows what --no-async leaves out", "without one of them");
  if (destination.output.kind == OutputKind::exported) {
    const exporters::Format& format = *exporters::find_format(destination.output.format);
    if (auto possible = check_weighed(destination.weighed, format); !possible) return fail(possible);
  }
  destination.inherited = inherited_of(a.view);
  destination.show_given = !a.view.show.empty();
  if (a.append && (destination.output.kind == OutputKind::exported || destination.output.path.empty()))
    return fail(ErrorKind::usage, "--append needs -o: the recording to continue",
                "phlox record --append -o app.phlox -p PID");
  if (a.source && (destination.output.kind != OutputKind::exported || destination.output.format != "html"))
    return fail(ErrorKind::usage, "--source is for a page", "phlox record --source -o app.html …");
  if (destination.output.kind == OutputKind::exported && (choices->thread_regex || choices->endpoint_regex)) {
    // An invalid pattern must be found before the recording, not at its end.
    if (auto tried = profile::build_call_tree(profile::Profile(), *choices); !tried) return fail(tried);
  }
  request.options.launched = line.has_program;
  request.options.command_line = line.text;
  return request;
}

}  // namespace phlox::cli
