#include "phlox/cli/record_request.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "phlox/base/text.h"
#include "phlox/cli/process_of.h"
#include "phlox/cli/trigger_request.h"
#include "phlox/cli/values.h"
#include "phlox/process/pause_limit.h"
#include "phlox/sampler/kernel/kernel_capture.h"

namespace phlox::cli {

namespace {

Result<void> read_targets(const CommandLine& line, RecordRequest& request) {
  const RecordArguments& a = line.record;
  if (auto checked = check_container(!a.pids.empty(), a.container); !checked) return checked;
  auto selection = selection::Selection::of(a.selection);
  if (!selection) return fail(selection);
  request.selection = *std::move(selection);
  if (line.has_program == (!a.pids.empty() || request.selection)) {
    return fail(
        ErrorKind::usage,
        line.has_program ? "give running processes or a program to start, not both" : "nothing to record",
        "phlox record -p PID, or: phlox record --name REGEX, or: phlox record -- python3 app.py");
  }
  for (const std::string& text : a.pids) {
    auto pid = process_of(line, text, a.container);
    if (!pid) return fail(pid);
    if (std::find(request.pids.begin(), request.pids.end(), *pid) == request.pids.end())
      request.pids.push_back(*pid);
  }
  request.program = line.program;
  if (line.has_program && request.program.empty())
    return fail(ErrorKind::usage, "no program after --", "phlox record -- python3 app.py");
  request.options.follow = !a.no_follow;
  request.options.launched = line.has_program;
  request.options.command_line = line.text;
  request.tasks = !a.no_async;
  return {};
}

Result<void> read_retention(const CommandLine& line, recording::Retention& retention) {
  const RecordArguments& a = line.record;
  if (auto read = read_option(line, "--keep", a.keep, parse_duration, retention.age); !read) return read;
  if (auto read = read_option(line, "--max-size", a.max_size, parse_size, retention.bytes); !read)
    return read;
  if (retention.bytes && *retention.bytes < recording::Writer::kLeastBytes)
    return fail(ErrorKind::usage,
                fmt::format("--max-size: {} is too small for a recording and its log", a.max_size),
                "at least --max-size 10M");
  return {};
}

Result<void> read_limits(const CommandLine& line, RecordRequest& request) {
  const RecordArguments& a = line.record;
  sampler::Options& options = request.options;
  options.rate_is_limit = a.rate.empty();
  if (auto read = read_option(line, "--rate", a.rate, parse_rate, options.rate_hz); !read) return read;
  if (auto read = read_option(line, "--stall", a.stall, parse_duration, request.shortest_stall); !read)
    return read;
  if (auto read = read_option(line, "--duration", a.duration, parse_duration, options.duration); !read)
    return read;
  Nanoseconds longest_pause = 0;
  if (auto read = read_option(line, "--max-pause", a.max_pause, parse_duration, longest_pause); !read)
    return read;
  if (!a.max_pause.empty()) process::PauseLimit::set_longest(longest_pause);
  if (auto read = read_retention(line, request.destination.retention); !read) return read;
  return read_option(line, "--max-overhead", a.max_overhead.empty() ? "2" : a.max_overhead, parse_overhead,
                     options.max_overhead_percent);
}

Result<void> read_mode(const RecordArguments& a, sampler::Options& options) {
  auto mode = parse_mode(a.mode, a.hands_off);
  if (!mode) return fail(mode);
  options.mode = *mode;
  auto native = native_source_of(a.native);
  if (!native) return fail(native);
  options.native = *native;
  if (options.native) options.unwind_cache = unwind_cache();
  if (*mode != sampler::Mode::kernel) return {};
  if (*native && *native != sampler::NativeSource::automatic) {
    return fail(ErrorKind::usage,
                "--native-source does not apply to --mode kernel, which reads native frames itself",
                "without --native-source, or without --mode kernel");
  }
  // Checked before a program is started.
  return sampler::check_kernel_capture("record --mode kernel");
}

// The view of the picture or the page that is written when the recording is over.
Result<void> read_view(const RecordArguments& a, Destination::Options& destination) {
  auto choices = choices_of(a.view);
  if (!choices) return fail(choices);
  if (choices->by.label) {
    return fail(ErrorKind::usage, "--by label: a recording has no labels until it has ended",
                "phlox label RECORDING FILE, then phlox export --by label");
  }
  if (view::is_of_event(choices->weight)) {
    return fail(ErrorKind::usage, "--weight event: phlox record records no events",
                "events are what perf record and pprof count: phlox report perf.data --event NAME");
  }
  destination.choices = *choices;
  destination.inherited = inherited_of(a.view);
  destination.show_given = !a.view.show.empty();
  destination.weighed = weighed_by(a.view);
  if (a.no_async && destination.weighed == Weighed::tasks)
    return fail(ErrorKind::usage, "--weight await shows what --no-async leaves out", "without one of them");
  if (destination.output.kind != OutputKind::exported) return {};
  const exporters::Format& format = *exporters::find_format(destination.output.format);
  return check_weighed(destination.weighed, format);
}

Result<void> read_destination(const CommandLine& line, RecordRequest& request) {
  const RecordArguments& a = line.record;
  Destination::Options& destination = request.destination;
  destination.append = a.append;
  destination.native = request.options.native.has_value();
  destination.debug_search = debug_search_of(a.native);
  destination.force = a.force;
  destination.source = a.source;
  // With --on it is a folder.
  auto output = named(line, "--output", parse_output(a.triggers.on.empty() ? a.output : ""));
  if (!output) return fail(output);
  destination.output = *output;
  if (auto read = read_view(a, destination); !read) return read;
  const bool exported = destination.output.kind == OutputKind::exported;
  if (a.append && a.triggers.on.empty() && (exported || destination.output.path.empty()))
    return fail(ErrorKind::usage, "--append needs -o: the recording to continue",
                "phlox record --append -o app.phlox -p PID");
  if (a.source && (!exported || destination.output.format != "html"))
    return fail(ErrorKind::usage, "--source is for a page", "phlox record --source -o app.html …");
  const view::Choices& choices = destination.choices;
  if (exported && (choices.thread_regex || choices.endpoint_regex)) {
    // An invalid pattern must be found before the recording, not at its end.
    if (auto tried = view::build_call_tree(profile::Profile(), choices); !tried) return fail(tried);
  }
  return {};
}

Result<void> read_triggers(const CommandLine& line, RecordRequest& request) {
  const RecordArguments& a = line.record;
  auto triggers = trigger_request_of(line, a.triggers, a.output);
  if (!triggers) return fail(triggers);
  request.triggers = *std::move(triggers);
  if (!request.triggers) return {};
  if (a.append) return fail(ErrorKind::usage, "--on does not go with --append", "without one of them");
  request.destination.output.path = request.triggers.recording();
  request.destination.native = false;  // an incident does not wait for names at the end: LiveNames
  auto kept = kept_for(request.triggers, a.keep, request.destination.retention.age);
  if (!kept) return fail(kept);
  request.destination.retention.age = *kept;
  return {};
}

Result<void> read_ready_fd(const std::string& text, std::optional<int>& descriptor) {
  if (text.empty()) return {};
  descriptor = parse_number<int>(text);
  const int flags = descriptor && *descriptor > STDERR_FILENO ? ::fcntl(*descriptor, F_GETFL) : -1;
  if (flags < 0 || (flags & O_ACCMODE) == O_RDONLY) {
    return fail(
        ErrorKind::usage,
        fmt::format("--ready-fd: '{}' is not an open file descriptor above 2 that phlox may write to", text),
        "phlox record --ready-fd 3 -p PID 3>ready");
  }
  // The caller waits until nobody has it open any more: a program that phlox starts must not.
  ::fcntl(*descriptor, F_SETFD, FD_CLOEXEC);
  return {};
}

}  // namespace

Result<RecordRequest> record_request_of(const CommandLine& line) {
  RecordRequest request;
  if (auto used = check_trigger_use(line.record.triggers); !used) return fail(used);
  if (auto read = read_ready_fd(line.record.ready_fd, request.ready_fd); !read) return fail(read);
  if (auto read = read_targets(line, request); !read) return fail(read);
  if (auto read = read_limits(line, request); !read) return fail(read);
  if (auto read = read_mode(line.record, request.options); !read) return fail(read);
  if (auto read = read_destination(line, request); !read) return fail(read);
  if (auto read = read_triggers(line, request); !read) return fail(read);
  return request;
}

}  // namespace phlox::cli
