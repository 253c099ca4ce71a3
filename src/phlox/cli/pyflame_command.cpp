// Pyflame's command line (src/prober.cc in 1.6.7), with its spellings, defaults and exit statuses: 0, or 1
// for any error.
#include <fmt/format.h>
#include <getopt.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <cstdlib>
#include <optional>

#include "phlox/base/text.h"
#include "phlox/cli/commands.h"
#include "phlox/cli/destination.h"
#include "phlox/cli/output_file.h"
#include "phlox/cli/signal_watch.h"
#include "phlox/exporters/pyflame.h"
#include "phlox/process/launch.h"
#include "phlox/process/process_state.h"
#include "phlox/profile/profile.h"
#include "phlox/report/dump.h"
#include "phlox/sampler/session/instant.h"
#include "phlox/sampler/session/recorder.h"
#include "phlox/selection/attach_error.h"

namespace phlox::cli {
namespace {

constexpr const char* kPyflameUsage =
    "Usage: pyflame [options] [-p] PID\n"
    "       pyflame [options] -t COMMAND [ARGUMENT...]\n"
    "\n"
    "Common Options:\n"
    "  --threads              sample every thread, not only the one that holds the GIL\n"
    "  -d, --dump             print the stacks of all threads once (implies --threads)\n"
    "  -h, --help             show this help\n"
    "  -n, --no-line-numbers  no line numbers after function names\n"
    "  -o, --output=PATH      write to this file instead of standard output\n"
    "  -p, --pid=PID          the process to sample\n"
    "  -r, --rate=RATE        seconds between two samples (default 0.01)\n"
    "  -s, --seconds=SECS     how long (default 1)\n"
    "  -t, --trace            start a command and sample it from its start to its end; the last option\n"
    "  -v, --version          show the version\n"
    "  -x, --exclude-idle     leave idle time out\n"
    "\n"
    "Advanced Options:\n"
    "  --abi=ABI              accepted and not needed: every CPython is recognised\n"
    "  --flamechart           timestamps, for Chrome's \"flame charts\"\n";

constexpr const char* kExamples =
    "Examples:\n"
    "  phlox pyflame -s 60 -r 0.01 -p 4711 -o prof.txt\n"
    "      a minute of a running program, 100 samples a second\n"
    "  phlox pyflame -x -t python3 app.py | flamegraph.pl > app.svg\n"
    "      a new program from its start to its end, without its idle time\n"
    "\n";

struct Arguments {
  std::optional<pid_t> pid;
  std::vector<std::string> command;
  double seconds = 1;
  double interval = 0.01;
  std::string output;
  bool dump = false, flamechart = false, trace = false, old_pid = false;
  bool help = false, version = false;
  exporters::PyflameOptions format;
};

tl::unexpected<Error> off(std::string message) {
  return fail(ErrorKind::usage, std::move(message), "pyflame --help");
}

std::optional<pid_t> pid_of(std::string_view text) {
  const auto pid = parse_number<pid_t>(text);
  return pid && *pid > 0 ? pid : std::nullopt;
}

enum : int { kAbi = 256, kThreads, kFlamechart };

Result<void> read_value(Arguments& a, int option, const char* value) {
  switch (option) {
    case kAbi: {
      const auto abi = parse_number<double>(value);
      if (!abi || *abi < 26) return off(fmt::format("Unknown or unsupported ABI version: {}", value));
      break;
    }
    case 'o':
      a.output = value;
      break;
    case 'p':
      a.pid = pid_of(value);
      if (!a.pid) return off(fmt::format("failed to parse \"{}\" as a PID", value));
      break;
    case 'r': {
      const auto interval = parse_number<double>(value);
      if (!interval || *interval <= 0)
        return off(fmt::format("'{}' is not a number of seconds between two samples", value));
      a.interval = *interval;
      break;
    }
    default: {
      const auto seconds = parse_number<double>(value);
      if (!seconds || *seconds > 3e7) return off(fmt::format("'{}' is not a number of seconds", value));
      a.seconds = *seconds;
    }
  }
  return {};
}

// One that getopt_long() found, with its value if it has one.
Result<void> read_option(Arguments& a, int option, const char* value) {
  switch (option) {
    case kThreads:
      a.format.threads = true;
      break;
    case kFlamechart:
      a.flamechart = true;
      break;
    case 'd':
      a.dump = a.format.threads = true;
      break;
    case 'h':
      a.help = true;
      break;
    case 'n':
      a.format.line_numbers = false;
      break;
    case 't':
      a.trace = true;
      break;
    case 'v':
      a.version = true;
      break;
    case 'x':
      a.format.exclude_idle = true;
      break;
    default:
      return read_value(a, option, value);
  }
  return {};
}

// What follows the options: a command, or as in old versions the process.
Result<void> read_rest(Arguments& a, const std::vector<std::string>& rest) {
  if (a.trace) {
    if (a.dump) return off("options -t and -d are not mutually compatible");
    if (a.pid) return off("options -t and -p are not mutually compatible");
    if (rest.empty()) return off("option -t requires a command to run");
    a.command = rest;
    a.seconds = -1;
  } else if (!a.pid) {
    if (rest.size() == 1) a.pid = pid_of(rest[0]);
    if (!a.pid) return off("which process?");
    a.old_pid = true;
  }
  return {};
}

Result<Arguments> parse(const std::vector<std::string>& words) {
  static const option kLong[] = {{"abi", required_argument, nullptr, kAbi},
                                 {"dump", no_argument, nullptr, 'd'},
                                 {"help", no_argument, nullptr, 'h'},
                                 {"rate", required_argument, nullptr, 'r'},
                                 {"seconds", required_argument, nullptr, 's'},
                                 {"threads", no_argument, nullptr, kThreads},
                                 {"no-line-numbers", no_argument, nullptr, 'n'},
                                 {"output", required_argument, nullptr, 'o'},
                                 {"pid", required_argument, nullptr, 'p'},
                                 {"trace", no_argument, nullptr, 't'},
                                 {"flamechart", no_argument, nullptr, kFlamechart},
                                 {"version", no_argument, nullptr, 'v'},
                                 {"exclude-idle", no_argument, nullptr, 'x'},
                                 {nullptr, 0, nullptr, 0}};
  std::vector<std::string> copies = words;
  std::vector<char*> argv;
  for (std::string& word : copies) argv.push_back(word.data());
  argv.push_back(nullptr);
  Arguments a;
  ::opterr = 0;
  ::optind = 1;
  // ':' distinguishes a missing value from an unknown option.
  for (int c = 0; !a.trace && (c = ::getopt_long(static_cast<int>(words.size()), argv.data(),
                                                 ":dhno:p:r:s:tvx", kLong, nullptr)) != -1;) {
    const char* given = argv[static_cast<size_t>(::optind) - 1];
    if (c == ':') return off(fmt::format("option '{}' needs a value", given));
    if (c == '?') return off(fmt::format("there is no option '{}'", given));
    if (auto read = read_option(a, c, ::optarg); !read) return fail(read);
  }
  if (a.help || a.version) return a;
  const std::vector<std::string> rest(words.begin() + std::min(::optind, static_cast<int>(words.size())),
                                      words.end());
  if (auto read = read_rest(a, rest); !read) return fail(read);
  return a;
}

Error explained(Error error, pid_t pid) {
  return selection::explain_attach_error(std::move(error), pid, "pyflame");
}

Result<void> write(const Arguments& a, const profile::Profile& profile, OutputFile& output) {
  if (a.dump) {
    write_pyflame_dump(profile, a.format, output.stream());
  } else if (a.flamechart) {
    write_pyflame_flamechart(profile, a.format, output.stream());
  } else {
    write_pyflame(profile, a.format, output.stream());
  }
  return output.commit();
}

// A single sample, for -d and -s 0.
Result<void> dump_once(const Arguments& a, OutputFile& output, Talk& talk) {
  profile::Profile profile;
  const auto seen = sampler::sample_once(*a.pid, {}, profile);
  if (!seen) return tl::unexpected<Error>(explained(seen.error(), *a.pid));
  for (const sampler::MissingThreads& row : seen->missing)
    talk.warn(report::describe({row.threads, row.why}));
  return write(a, profile, output);
}

Result<void> record_for(const Arguments& a, OutputFile& output, Talk& talk) {
  constexpr std::array kSignals = {SIGINT, SIGTERM, SIGHUP, SIGPIPE};
  std::atomic<bool> stop{false};
  profile::Profile profile;
  sampler::Options options;
  options.rate_hz = 1 / a.interval;
  // Pyflame counts samples, and each must stand for the same amount of time.
  options.mode = sampler::Mode::no_kernel;
  options.launched = a.trace;
  if (a.seconds >= 0) options.duration = static_cast<Nanoseconds>(a.seconds * 1e9);
  std::optional<process::LaunchedProgram> program;
  SignalWatch watch(kSignals);
  pid_t pid = a.pid.value_or(0);
  if (a.trace) {
    process::LaunchOptions launch;
    launch.user = process::calling_user();
    launch.signal_mask = watch.mask_before();
    auto started = process::LaunchedProgram::start(a.command, launch);
    if (!started) return fail(started);
    program.emplace(*std::move(started));
    pid = program->pid();
    options.release = [&program] { return program->release(); };
  }
  watch.start([&](SignalSeen seen) {
    if (seen.number == SIGPIPE) return;
    if (program && !(seen.from_kernel && seen.number == SIGINT)) program->send_signal(seen.number);
    stop = true;
  });
  auto recorder = sampler::Recorder::attach({pid}, options, stop);
  if (!recorder) {
    // If it was released.
    if (program && recorder.error().kind != ErrorKind::launch) program->wait();
    return tl::unexpected<Error>(explained(recorder.error(), pid));
  }
  const sampler::Outcome outcome = (*recorder)->run(profile, stop, [](const sampler::Progress&) {});
  for (const std::string& warning : outcome.warnings) talk.warn(warning);
  if (program) program->wait();
  return write(a, profile, output);
}

Result<void> run_pyflame(const Arguments& a, Talk& talk) {
  if (a.pid) {
    const auto state = process::read_process_state(*a.pid);
    if (!state) return fail(state);
    if (auto possible = process::check_recordable(*state); !possible) return possible;
    if (a.old_pid) talk.warn("a PID without -p is an old way of Pyflame's; use -p PID");
  }
  auto output = OutputFile::open(a.output, {recording_owner(), {}, false});
  if (!output) return fail(output);
  return a.dump || (a.seconds >= 0 && a.seconds < a.interval) ? dump_once(a, **output, talk)
                                                              : record_for(a, **output, talk);
}

}  // namespace

int pyflame(const std::vector<std::string>& words, Talk& talk) {
  const auto arguments = parse(words);
  auto done = arguments ? Result<void>() : Result<void>(fail(arguments));
  if (arguments && (arguments->help || arguments->version)) {
    auto out = OutputFile::open("-", {.text = true});
    if (arguments->help) {
      (*out)->stream() << kExamples << kPyflameUsage;
    } else {
      (*out)->stream() << "pyflame of phlox " << PHLOX_VERSION << "\n";
    }
    done = (*out)->commit();
  } else if (arguments) {
    done = run_pyflame(*arguments, talk);
  }
  if (done) return 0;
  talk.error(done.error());
  return 1;
}

}  // namespace phlox::cli
