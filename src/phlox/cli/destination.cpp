#include "phlox/cli/destination.h"

#include "phlox/cli/export_file.h"
#include "phlox/cli/source_files.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "phlox/base/place.h"
#include "phlox/base/temporary_folder.h"
#include "phlox/exporters/registry.h"
#include "phlox/process/launch.h"
#include "phlox/recording/reader.h"
#include "phlox/view/await_time.h"
#include "phlox/view/prepared.h"

namespace phlox::cli {
Result<std::unique_ptr<Destination>> Destination::open(Options options, const std::string& name) {
  std::unique_ptr<Destination> made(new Destination(std::move(options)));
  const Output& output = made->options_.output;
  if (output.kind == OutputKind::exported) {
    auto exported = OutputFile::open(
        output.path,
        {.owner = recording_owner(), .force = made->options_.force, .secret = made->options_.source});
    if (!exported) return fail(exported);
    made->exported_ = *std::move(exported);
    made->recording_ = made->kept_name(name);
  } else {
    made->recording_ = output.path.empty() ? name : output.path;
  }
  const bool appends = made->options_.append && recording::is_recording(made->recording_);
  if (auto possible = appends ? recording::Writer::check_append(made->recording_, recording_owner())
                              : recording::Writer::check(made->recording_, recording_owner());
      !possible)
    return fail(possible);
  return made;
}

// Next to the output, under a name that no other recording has: "flame.svg.phlox". If the output is no
// regular file, the recording is kept only until the output is written.
std::string Destination::kept_name(const std::string& name) {
  kept_ = exported_->is_new_file();
  if (kept_) return options_.output.path + ".phlox";
  return fmt::format("{}/phlox-{}-{}", temporary_folder(), ::getpid(), name);
}

std::optional<FileUser> recording_owner() {
  const auto user = process::calling_user();
  return user ? std::optional(FileUser{user->uid, user->gid, user->groups}) : std::nullopt;
}

Result<void> Destination::begin() {
  const bool is_there = recording::is_recording(recording_);
  appended_ = options_.append && is_there;
  replaced_ = is_there && !appended_;
  auto writer = appended_ ? recording::Writer::append(recording_, recording_owner())
                          : recording::Writer::create(recording_, recording_owner());
  if (!writer) return fail(writer);
  writer_ = *std::move(writer);
  writer_->keep_only(options_.retention);
  rows_.emplace(*writer_);
  return {};
}

std::vector<naming::NativeRows::Missing> Destination::name(
    const std::vector<sampler::NativeModule>& modules) {
  auto missing = rows_->name(modules, options_.debug_search);
  rows_->advise(missing);
  return missing;
}

// Short enough to summarize at once: recording takes at most 20 MiB, and 4 MB of rows need about that much
// memory.
bool Destination::is_short() const {
  constexpr off_t kLongest = 4'000'000;
  struct stat there {};
  return ::stat(where_.c_str(), &there) == 0 && there.st_size <= kLongest;
}

Result<void> Destination::finish() {
  auto finished = writer_->finish();
  where_ = writer_->where();
  if (!finished) return finished;
  if (where_.empty()) return {};
  if (!exported_ && !is_short()) return {};
  auto tasks = read_task_rows(where_);
  if (!tasks) return fail(tasks);
  task_rows_ = *std::move(tasks);
  auto read = recording::read(where_);
  if (!read) return fail(read);
  profile_ = *std::move(read);
  if (auto joined = join_task_rows(task_rows_, profile_, where_); !joined) return joined;
  view::prepare_tasks(profile_, task_rows_, options_.choices);
  if (!exported_) return view::prepare_view(profile_, options_.choices, options_.inherited);
  const exporters::Format* format = exporters::find_format(options_.output.format);
  const auto choices = options_.show_given ? options_.choices : choices_for(*format, options_.choices);
  const auto with_inherited =
      prepare_export(profile_, task_rows_, options_.weighed, *format, choices, options_.inherited, where_);
  if (!with_inherited) return fail(with_inherited);
  exporters::ExportOptions options;
  options.with_inherited = *with_inherited ? &**with_inherited : nullptr;
  options.show_inherited = options_.inherited == view::Inherited::shown;
  options.weigh_awaits = options_.weighed == Weighed::tasks;
  options.tasks = &task_rows_;
  options.remarks = &remarks_;
  options.notes = &notes_;
  const SourceFiles sources(profile_);
  if (options_.source) options.source = [&](const std::string& file) { return sources.read(file); };
  if (auto written = format->write(profile_, choices, options, exported_->stream()); !written)
    return fail(written);
  // The summary of the recording is about its threads.
  if (options_.weighed == Weighed::tasks) profile_.show_samples_of(view::kTimeOfThreads);
  if (auto committed = exported_->commit(); !committed) return committed;
  const auto place = kept_ ? std::nullopt : Place::find(where_, recording_owner());
  if (place) place->remove(place->name());
  return {};
}

std::string Destination::what_was_written() const {
  if (where_.empty()) return {};
  std::string text;
  if (exported_) {
    if (!kept_) return options_.output.path == "-" ? "" : options_.output.path;
    text = with_size(options_.output.path) + ", and beside it the recording ";
  }
  return text + with_size(where_) +
         (replaced_   ? ", in place of the recording that was there"
          : appended_ ? ", behind what was there"
                      : "");
}

}  // namespace phlox::cli
