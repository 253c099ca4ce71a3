#include "phlox/cli/values.h"

#include <fmt/format.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <ctime>
#include <limits>

#include "phlox/base/text.h"
#include "phlox/cli/task_rows.h"
#include "phlox/cli/view_values.h"
#include "phlox/exporters/registry.h"
#include "phlox/http/curl_http.h"
#include "phlox/profile/sampled_events.h"
#include "phlox/unwind/table_cache.h"
#include "phlox/view/shown_event.h"
#include "phlox/view/work.h"

namespace phlox::cli {
namespace {

// ".svg, .txt, .collapsed": all extensions of the registry.
std::string extensions() {
  std::string list;
  for (const exporters::Format& format : exporters::formats()) {
    for (const std::string_view extension : format.extensions) {
      list += list.empty() ? "" : ", ";
      list += extension;
    }
  }
  return list;
}

template <class T>
tl::unexpected<Error> of_option(std::string_view option, const Result<T>& wrong) {
  return fail(wrong.error().kind, fmt::format("{}: {}", option, wrong.error().message), wrong.error().hint);
}

bool is_python(std::string_view program) {
  return program.starts_with("python") || program.starts_with("pypy");
}

// What an interpreter with these arguments runs: a file, or the module of -m; empty if neither.
std::string_view script_of(const std::vector<std::string>& command) {
  for (size_t i = 1; i < command.size(); ++i) {
    const std::string& word = command[i];
    if (word == "-m") return i + 1 < command.size() ? std::string_view(command[i + 1]) : std::string_view();
    if (word == "-c") return {};
    if (word == "-X" || word == "-W")
      ++i;  // these options take a value
    else if (!word.starts_with("-"))
      return base_name(word);
  }
  return {};
}

}  // namespace

std::string time_stamp(std::time_t now) {
  std::tm local{};
  ::localtime_r(&now, &local);
  char stamp[32];
  std::strftime(stamp, sizeof stamp, "%Y%m%d-%H%M%S", &local);
  return stamp;
}

Result<pid_t> parse_pid(std::string_view text) {
  std::string_view digits = text;
  int base = 10;
  if (digits.starts_with("0x")) {
    digits.remove_prefix(2);
    base = 16;
  }
  pid_t pid = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), pid, base);
  if (error != std::errc{} || end != digits.data() + digits.size() || pid <= 0) {
    return fail(ErrorKind::usage, fmt::format("'{}' is not the id of a process", text),
                text.find_first_of(", ") != std::string_view::npos
                    ? "one process for each -p: -p 4711"
                    : "one number: -p 4711; phlox list shows which Pythons run");
  }
  return pid;
}

Result<Nanoseconds> parse_duration(std::string_view text) {
  const auto ns = parse_nanoseconds(text);
  // A year or more is a typing error.
  if (ns && *ns >= 1 && *ns < 3.2e16) return static_cast<Nanoseconds>(*ns);
  return fail(ErrorKind::usage, fmt::format("'{}' is not a duration", text),
              "seconds, or a number with ns, us, ms, s, m or h: -d 10, -d 1.5, -d 2m");
}

Result<uint64_t> parse_size(std::string_view text) {
  constexpr std::pair<std::string_view, double> kUnits[] = {
      {"k", 1e3}, {"K", 1e3}, {"M", 1e6}, {"G", 1e9}, {"T", 1e12}};
  double unit = 1;
  std::string_view digits = text.ends_with("B") ? text.substr(0, text.size() - 1) : text;
  for (const auto& [name, value] : kUnits) {
    if (!digits.ends_with(name)) continue;
    unit = value;
    digits.remove_suffix(1);
    break;
  }
  const auto number = parse_number<double>(digits);
  if (number && *number > 0 && *number * unit < 1e18) return static_cast<uint64_t>(*number * unit);
  return fail(ErrorKind::usage, fmt::format("'{}' is not a size", text),
              "a number of bytes, or with k, M or G: --max-size 200M");
}

Result<double> parse_rate(std::string_view text) {
  if (text == "max") return 0.0;
  const auto number = parse_number<double>(text.ends_with("Hz") ? text.substr(0, text.size() - 2) : text);
  // Less than one sample in a quarter of an hour samples nothing; more than a million a second is impossible.
  if (number && *number >= 0.001 && *number <= 1e6) return *number;
  return fail(ErrorKind::usage, fmt::format("'{}' is not a rate", text),
              "samples a second, 0.001 to 1000000, or max: -r 200");
}

Result<std::optional<double>> parse_overhead(std::string_view text) {
  if (text == "off") return std::optional<double>();
  const auto number = parse_number<double>(text.ends_with("%") ? text.substr(0, text.size() - 1) : text);
  if (number && *number > 0 && *number <= 100) return std::optional<double>(*number);
  return fail(ErrorKind::usage, fmt::format("'{}' is not a share of a CPU", text),
              "percent above 0, or off: --max-overhead 2");
}

Result<sampler::Mode> parse_mode(std::string_view text, bool hands_off) {
  if (hands_off && !text.empty() && text != "hands-off") {
    return fail(ErrorKind::usage, fmt::format("--hands-off and --mode {} contradict each other", text),
                "give one of them");
  }
  if (hands_off || text == "hands-off") return sampler::Mode::hands_off;
  if (text == "same-cpu") return sampler::Mode::same_cpu;
  if (text == "ptrace") return sampler::Mode::ptrace;
  if (text == "kernel") return sampler::Mode::kernel;
  if (text == "no-kernel") return sampler::Mode::no_kernel;
  return sampler::Mode::automatic;
}

Result<uint64_t> parse_page_size(std::string_view text) {
  double megabytes = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), megabytes);
  // Browsers limit a page's text to 512 MB.
  if (error != std::errc{} || end != text.data() + text.size() || !(megabytes > 0 && megabytes <= 500)) {
    return fail(ErrorKind::usage,
                fmt::format("--max-page-size: '{}' is not a number of megabytes up to 500", text),
                "--max-page-size 24");
  }
  return static_cast<uint64_t>(megabytes * 1e6);
}

Result<size_t> parse_count(std::string_view option, std::string_view text) {
  const auto count = parse_number<size_t>(text);
  if (!count || *count == 0) {
    return fail(ErrorKind::usage, fmt::format("{}: '{}' is not a number above 0", option, text),
                fmt::format("{} 20", option));
  }
  return *count;
}

Result<std::optional<sampler::NativeSource>> native_source_of(const NativeArguments& native) {
  using sampler::NativeSource;
  if (native.debuginfod) {
    if (auto loaded = http::load_curl(); !loaded) return fail(loaded);
  }
  if (!native.native) {
    const bool other = !native.source.empty() || !native.debug_paths.empty() || native.debuginfod;
    if (!other) return std::optional<NativeSource>();
    const char* which = !native.source.empty()        ? "--native-source"
                        : !native.debug_paths.empty() ? "--debug-path"
                                                      : "--debuginfod";
    return fail(ErrorKind::usage, fmt::format("{} without --native", which), "add --native");
  }
  if (native.source == "perf") return std::optional(NativeSource::perf);
  if (native.source == "ptrace") return std::optional(NativeSource::ptrace);
  if (native.source == "syscall") return std::optional(NativeSource::syscall);
  return std::optional(NativeSource::automatic);
}

namespace {

// The folder, if it is ours or can be made in one that is ours: under `sudo -E` the variables are another
// user's.
std::string if_ours(const char* path) {
  if (path == nullptr || ::geteuid() != 0) return path == nullptr ? "" : path;
  struct stat there {};
  for (std::string folder = path; folder.size() > 1; folder.resize(std::max<size_t>(folder.rfind('/'), 1))) {
    if (folder.front() != '/') return {};
    if (::stat(folder.c_str(), &there) == 0) return there.st_uid == ::geteuid() ? path : std::string();
  }
  return {};
}

// The home whose .cache we may create folders in: root's if $HOME is another user's.
std::string home_of_cache() {
  const char* const home = std::getenv("HOME");
  if (home == nullptr) return {};
  const auto is_ours = [](const std::string& folder) {
    return !if_ours((folder + "/.cache").c_str()).empty();
  };
  if (is_ours(home)) return home;
  const passwd* const entry = ::getpwuid(0);
  const std::string root = entry != nullptr && entry->pw_dir != nullptr ? entry->pw_dir : "";
  return is_ours(root) ? root : std::string();
}

// Where the other clients of this user keep their files.
std::string debuginfod_cache() {
  if (const char* const named = std::getenv("DEBUGINFOD_CACHE_PATH")) return if_ours(named);
  std::string folder = if_ours(std::getenv("XDG_CACHE_HOME"));
  if (folder.empty()) {
    const std::string home = home_of_cache();
    if (home.empty()) return {};
    folder = home + "/.cache";
  }
  return folder + "/debuginfod_client";
}

std::shared_ptr<symbols::Debuginfod> debuginfod_here() {
  auto settings = symbols::Debuginfod::settings_of([](const char* name) { return std::getenv(name); },
                                                   debuginfod_cache());
  const http::ClientOptions options{
      .certificates = {}, .patience = settings.patience, .slow = settings.slow, .follow = true};
  return std::make_shared<symbols::Debuginfod>(
      std::move(settings), [options] { return http::load_curl() ? http::make_client(options) : nullptr; });
}

}  // namespace

symbols::DebugSearch debug_search_of(const NativeArguments& native) {
  symbols::DebugSearch search;
  search.folders.insert(search.folders.begin(), native.debug_paths.begin(), native.debug_paths.end());
  if (native.debuginfod) search.debuginfod = debuginfod_here();
  // Next to the unwind tables.
  if (const std::string tables = unwind_cache(); !tables.empty())
    search.name_cache = tables.substr(0, tables.rfind('/')) + "/names";
  return search;
}

std::string unwind_cache() {
  const std::string cache = if_ours(std::getenv("XDG_CACHE_HOME"));
  return unwind::cache_folder(cache, home_of_cache());
}

std::string agent_folder() {
  // Of systemd, for a unit with StateDirectory=; the first of several.
  if (const char* const given = std::getenv("STATE_DIRECTORY"); given != nullptr && *given == '/')
    return std::string(std::string_view(given).substr(0, std::string_view(given).find(':')));
  const std::string state = if_ours(std::getenv("XDG_STATE_HOME"));
  if (!state.empty()) return state + "/phlox/agent";
  const std::string home = home_of_cache();
  return home.empty() ? home : home + "/.local/state/phlox/agent";
}

Result<view::Choices> choices_of(const ViewArguments& view) {
  view::Choices choices;
  if (!view.by.empty()) {
    auto by = parse_by(view.by);
    if (!by) return of_option("--by", by);
    choices.by = *by;
  }
  if (!view.states.empty()) {
    auto states = parse_states(view.states);
    if (!states) return of_option("--state", states);
    choices.states = *states;
  }
  if (!view.thread.empty()) choices.thread_regex = view.thread;
  if (!view.label.empty()) choices.label_regex = view.label;
  if (!view.endpoint.empty()) choices.endpoint_regex = view.endpoint;
  if (!view.trace.empty()) {
    auto trace = parse_trace(view.trace);
    if (!trace) return of_option("--trace", trace);
    choices.trace = *trace;
  }
  if (!view.pid.empty()) {
    auto pid = parse_pid(view.pid);
    if (!pid) return of_option("--pid", pid);
    choices.pid = *pid;
  }
  if (!view.time.empty()) {
    auto range = parse_time_range(view.time);
    if (!range) return of_option("--time", range);
    choices.from = range->from;
    choices.to = range->to;
  }
  if (!view.weight.empty()) {
    auto weight = parse_weight(view.weight);
    if (!weight) return of_option("--weight", weight);
    choices.weight = *weight;
  }
  const bool awaits = weighed_by(view) == Weighed::tasks;
  if (awaits && (!view.time.empty() || !view.label.empty() || !view.trace.empty() || choices.by.label))
    return fail(ErrorKind::usage,
                "--weight await is the time of the whole recording, of which no part is known",
                "leave --time, --label, --trace and --by label out");
  // Selected states, threads, endpoints or traces are shown completely; CPU time has no waits in it, and
  // await time has nothing else.
  const bool precise = !view.states.empty() || !view.thread.empty() || !view.endpoint.empty() ||
                       !view.trace.empty() || choices.weight == view::Weight::cpu || awaits;
  choices.show = precise ? view::Show::everything : view::Show::work;
  if (!view.show.empty()) {
    auto show = parse_show(view.show);
    if (!show) return fail(show);
    choices.show = *show;
  }
  if (!view.native_names.empty()) {
    auto names = parse_native_names(view.native_names);
    if (!names) return of_option("--native-names", names);
    choices.native_names = *names;
  }
  choices.all_frames = view.all_frames;
  choices.awaiters = !view.no_awaiters;
  return choices;
}

view::Inherited inherited_of(const ViewArguments& view) {
  return view.inherited_frames ? view::Inherited::shown : view::Inherited::hidden;
}

view::Choices choices_for(const exporters::Format& format, view::Choices choices) {
  if (format.show == view::Show::everything) choices.show = view::Show::everything;
  return choices;
}

std::optional<std::string> left_out(const profile::Profile& profile, const view::Choices& choices) {
  const std::string words = view::left_out_words(view::waiting_for_work(profile, choices));
  if (words.empty()) return {};
  return fmt::format("left out: {}; --show everything has it", words);
}

Result<void> settle_weight(view::Choices& choices, const ViewArguments& view, const InputArguments& input,
                           const profile::Profile& profile) {
  const auto& samples = profile.samples();
  const profile::SampledEvent event = view::shown_event(profile);
  const bool counted = !event.name.empty() && event.unit != profile::Unit::nanoseconds;
  if (view::is_of_event(choices.weight)) {
    if (!counted) {
      return fail(
          ErrorKind::usage,
          "--weight event: " + (event.name.empty() ? "the recording has no events" : event.name + " is time"),
          "--weight wall, cpu or samples; --event NAME chooses another event");
    }
    choices.weight = view::weight_of(event.unit);
  }
  if (!view.weight.empty()) return {};
  const bool timeless =
      std::none_of(samples.begin(), samples.end(), [](const auto& s) { return s.wall > 0; });
  // The text of perf script may lack the counts.
  if (counted && (timeless || !input.event.empty()) &&
      std::any_of(samples.begin(), samples.end(), [](const auto& s) { return s.value > 0; })) {
    choices.weight = view::weight_of(event.unit);
  } else if (timeless && !samples.empty()) {
    choices.weight = view::Weight::samples;
  }
  return {};
}

Result<Output> parse_output(const std::string& text) {
  Output output;
  output.path = text;
  if (text.empty() || text.ends_with(".phlox")) return output;
  output.kind = OutputKind::exported;
  if (text == "-") {
    output.format = "collapsed";
    return output;
  }
  if (const exporters::Format* format = exporters::find_format_for_file(text)) {
    output.format = format->name;
    return output;
  }
  return fail(
      ErrorKind::usage, fmt::format("cannot tell from '{}' what to write", text),
      fmt::format("the extension chooses: .phlox, {}; or - for collapsed on standard output", extensions()));
}

std::string short_name(const std::vector<std::string>& command) {
  std::string_view name = command.empty() ? "" : base_name(command[0]);
  // An interpreter need not be called python (`3.13t app.py`), so the script's name decides too.
  const std::string_view script = script_of(command);
  if (!script.empty() && (is_python(name) || script.ends_with(".py"))) name = script;
  if (name.ends_with(".py")) name.remove_suffix(3);
  std::string clean;
  for (const char c : name) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '_' || c == '.' || c == '-';
    clean += plain ? c : '_';
  }
  constexpr size_t kLongest = 60;  // a file name may have 255
  clean.resize(std::min(clean.size(), kLongest));
  while (!clean.empty() && (clean.front() == '.' || clean.front() == '-')) clean.erase(0, 1);
  return clean.empty() ? "process" : clean;
}

std::vector<std::string> words_of(const std::string& command_line) {
  std::vector<std::string> words;
  for (size_t at = 0; at < command_line.size();) {
    const size_t blank = std::min(command_line.find(' ', at), command_line.size());
    words.push_back(command_line.substr(at, blank - at));
    at = blank + 1;
  }
  return words;
}

std::string default_recording_name(const std::vector<std::string>& command, pid_t pid, std::time_t now) {
  return fmt::format("{}-{}-{}.phlox", short_name(command), pid, time_stamp(now));
}

std::string snapshot_name(const std::string& recording, std::time_t now) {
  const std::string stem =
      recording.ends_with(".phlox") ? recording.substr(0, recording.size() - 6) : recording;
  return fmt::format("{}-{}.phlox", stem, time_stamp(now));
}

}  // namespace phlox::cli
