// The values of options, from text. Pure; an error says what would be valid, and named() names the option.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "phlox/base/clock.h"
#include "phlox/base/result.h"
#include "phlox/cli/arguments.h"
#include "phlox/exporters/registry.h"
#include "phlox/sampler/session/recorder.h"
#include "phlox/symbols/debug_files.h"
#include "phlox/view/forks.h"
#include "phlox/view/view.h"

namespace phlox::cli {

// The parsed value of an option; an error begins with the option as it was typed.
template <class T>
Result<T> named(const CommandLine& line, const std::string& option, Result<T> made) {
  if (made) return made;
  const auto typed = line.typed.find(option);
  made.error().message = (typed == line.typed.end() ? option : typed->second) + ": " + made.error().message;
  return made;
}

// Reads an option into `into`, if it was given.
template <class T, class Parse>
Result<void> read_option(const CommandLine& line, const std::string& option, const std::string& text,
                         Parse parse, T& into) {
  if (text.empty()) return {};
  auto value = named(line, option, parse(text));
  if (!value) return fail(value);
  into = *value;
  return {};
}

Result<pid_t> parse_pid(std::string_view text);                       // "4711", "0x1267"
Result<Nanoseconds> parse_duration(std::string_view text);            // "10", "1.5", "500ms", "2m", "1h"
Result<double> parse_rate(std::string_view text);                     // "200", "max" (0)
Result<std::optional<double>> parse_overhead(std::string_view text);  // "2", "0.5%", "off"
Result<sampler::Mode> parse_mode(std::string_view text, bool hands_off);
Result<uint64_t> parse_size(std::string_view text);       // bytes: "200M", "1.5G", "500k", "1000000"
Result<uint64_t> parse_page_size(std::string_view text);  // megabytes: "24", "1.5"
Result<size_t> parse_count(std::string_view option, std::string_view text);

Result<std::optional<sampler::NativeSource>> native_source_of(const NativeArguments& native);
symbols::DebugSearch debug_search_of(const NativeArguments& native);
// Folder of unwind tables, from the environment; under sudo root's, not the calling user's.
std::string unwind_cache();
// What phlox agent could not send yet, from the environment; the same rule. Empty: none is known.
std::string agent_folder();

Result<view::Choices> choices_of(const ViewArguments& view);
// If `show` was not given: the part that this format shows.
view::Choices choices_for(const exporters::Format& format, view::Choices choices);

// A line about the waiting that the choices leave out.
std::optional<std::string> left_out(const profile::Profile& profile, const view::Choices& choices);
// Frames that forked processes inherited from their parents: shown, or left out.
view::Inherited inherited_of(const ViewArguments& view);
// If nothing else was requested: for a named event, or a recording without times, the event's count, or
// samples if that is unknown too. ErrorKind::usage: there is no such number.
Result<void> settle_weight(view::Choices& choices, const ViewArguments& view, const InputArguments& input,
                           const profile::Profile& profile);

// The meaning of `record -o`.
enum class OutputKind { recording, exported };
struct Output {
  OutputKind kind = OutputKind::recording;
  std::string path;    // empty: make a name; "-": standard output
  std::string format;  // of exporters::registry; exported only
};
Result<Output> parse_output(const std::string& text);

// "app" of "python3 -X dev app.py --port 80", "pytest" of "python -m pytest", "uwsgi" of "/usr/bin/uwsgi":
// good for a file name.
std::string short_name(const std::vector<std::string>& command);
// The words of /proc/PID/cmdline as one text, precise enough for a name: blanks inside an argument also
// separate.
std::vector<std::string> words_of(const std::string& command_line);
// "20261121-083000", local time.
std::string time_stamp(std::time_t now);
// "app-4711-20261121-083000.phlox"
std::string default_recording_name(const std::vector<std::string>& command, pid_t pid, std::time_t now);
// "app-20261123-093000.phlox" for "app.phlox", next to it: the default name of a snapshot.
std::string snapshot_name(const std::string& recording, std::time_t now);

}  // namespace phlox::cli
