#include "phlox/cli/recordings.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string_view>
#include <vector>

#include "phlox/base/private_folder.h"
#include "phlox/cli/values.h"
#include "phlox/importers/gzip_input.h"
#include "phlox/importers/registry.h"
#include "phlox/importers/utf16_input.h"
#include "phlox/naming/native_names.h"
#include "phlox/profile/unfinished.h"
#include "phlox/recording/reader.h"
#include "phlox/view/shown_event.h"

namespace phlox::cli {
namespace {

constexpr std::string_view kOurs = "SQLite format 3";

bool is_ours(importers::Input& input) {
  std::array<std::byte, kOurs.size()> head{};
  return input.read_at(0, head) == head.size() &&
         std::string_view(reinterpret_cast<const char*>(head.data()), head.size()) == kOurs;
}

importers::ImportOptions options_of(const InputArguments& arguments) {
  importers::ImportOptions options;
  options.event = arguments.event;
  options.files.sysroot = arguments.sysroot;
  options.files.unwind_cache = unwind_cache();
  // Where perf keeps the files that its recordings name, and where `perf archive` unpacks them.
  if (const char* home = std::getenv("HOME"); home != nullptr && *home == '/')
    options.files.build_id_dirs.push_back(std::string(home) + "/.debug");
  options.files.build_id_dirs.insert(options.files.build_id_dirs.begin(), arguments.debug_paths.begin(),
                                     arguments.debug_paths.end());
  return options;
}

symbols::DebugSearch debug_search_of(const InputArguments& arguments) {
  NativeArguments native;
  native.debug_paths = arguments.debug_paths;
  native.debuginfod = arguments.debuginfod;
  symbols::DebugSearch search = cli::debug_search_of(native);
  if (!arguments.sysroot.empty())
    search.folders.insert(search.folders.begin(), arguments.sysroot + "/usr/lib/debug");
  return search;
}

// The recording of a picture: `record -o flame.svg` keeps flame.svg.phlox, `view app.phlox` writes
// app.phlox.html.
std::optional<std::string> hint_at_recording(const std::string& path) {
  for (const std::string& one : {path + ".phlox", path.substr(0, path.rfind('.'))})
    if (one != path && one.ends_with(".phlox") && ::access(one.c_str(), R_OK) == 0)
      return "the recording is " + one;
  return std::nullopt;
}

Result<const importers::Format*> format_of(importers::Input& input, const std::string& path,
                                           const std::string& from) {
  if (!from.empty()) return importers::find_format(from);  // one of the choices: the parser checked it
  if (const importers::Format* format = importers::recognise(input)) return format;
  return fail(ErrorKind::input, fmt::format("phlox does not recognise the format of {}", path),
              hint_at_recording(path).value_or("name its format with --from: " + importers::format_names()));
}

tl::unexpected<Error> not_read(const std::string& path, int error) {
  return fail(ErrorKind::input, fmt::format("cannot read {}: {}", path, std::strerror(error)));
}

Result<void> import_from(importers::Input& file, const std::string& path, const InputArguments& arguments,
                         profile::Sink& sink, Talk& talk) {
  const std::unique_ptr<importers::GzipInput> unpacked = importers::GzipInput::of(file);
  importers::Input& bytes = unpacked ? *unpacked : file;
  const std::unique_ptr<importers::Utf16Input> utf8 = importers::Utf16Input::of(bytes);
  importers::Input& input = utf8 ? *utf8 : bytes;
  const auto format = format_of(input, path, arguments.from);
  if (file.error() != 0) return not_read(path, file.error());
  if (!format) return fail(format);
  naming::NativeRows rows(sink, naming::NativeRows::Kernel::named_already,
                          naming::NativeRows::Put::when_named);
  auto outcome = (*format)->import(input, options_of(arguments), rows);
  if (file.error() != 0) return not_read(path, file.error());
  if (unpacked && unpacked->damaged())
    talk.warn(path + ": the compressed data end early or are damaged; the rest is missing");
  if (!outcome)
    return fail(outcome.error().kind, path + ": " + outcome.error().message, outcome.error().hint);
  for (const std::string& warning : outcome->warnings) talk.warn(path + ": " + warning);
  for (const std::string& detail : outcome->details) talk.detail(detail);
  talk.note(outcome->summary);
  if (outcome->samples == 0) talk.warn(path + ": there is no sample in it");
  const symbols::DebugSearch search = debug_search_of(arguments);
  auto missing = rows.name(outcome->modules, search);
  rows.advise(missing);
  for (const naming::NativeRows::Missing& row : missing) talk.detail(describe(row));
  keep_within(unwind_cache());
  keep_within(search.name_cache);
  return sink.commit();
}

Result<profile::Profile> read_ours(const std::string& path, const InputArguments& arguments) {
  auto profile = recording::read_begun(path);
  // A snapshot is also of a recording whose frames have no names yet.
  if (profile && (profile::is_unfinished(*profile) || profile->meta().contains("snapshot_of"))) {
    naming::NamesHere names(debug_search_of(arguments));
    // A recording in progress is made on this host.
    names.name(*profile, profile::grows(*profile) ? naming::NamesHere::Kernel::this_host
                                                  : naming::NamesHere::Kernel::named_already);
    names.keep();
  }
  return profile;
}

Result<profile::Profile> read_all_events(const std::string& path, const InputArguments& arguments,
                                         Talk& talk) {
  auto input = importers::FileInput::open(path);
  // Our reader has the better message for a file that cannot be opened, or is empty.
  if (!input || ((*input)->size() && (*(*input)->size() == 0 || is_ours(**input))))
    return read_ours(path, arguments);
  profile::Profile profile;
  if (auto imported = import_from(**input, path, arguments, profile, talk); !imported) return fail(imported);
  return profile;
}

}  // namespace

Result<profile::Profile> read_recording(const std::string& path, const InputArguments& arguments,
                                        Talk& talk) {
  auto profile = read_all_events(path, arguments, talk);
  if (!profile) return profile;
  if (auto shown = view::show_event(*profile, arguments.event); !shown)
    return fail(shown.error().kind, path + ": " + shown.error().message, shown.error().hint);
  return profile;
}

Result<void> import_recording(const std::string& path, const InputArguments& arguments, profile::Sink& sink,
                              Talk& talk) {
  auto input = importers::FileInput::open(path);
  if (!input) return fail(input);
  if (is_ours(**input))
    return fail(ErrorKind::input, fmt::format("{} is a phlox recording already", path),
                "phlox report " + path);
  return import_from(**input, path, arguments, sink, talk);
}

}  // namespace phlox::cli
