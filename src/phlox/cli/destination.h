// Where the rows of `phlox record` go while it records, and the output that is made of them in the end.
// Existing files are not touched before begin(); from then on the recording stays, whatever happens.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "phlox/base/result.h"
#include "phlox/cli/output_file.h"
#include "phlox/cli/task_rows.h"
#include "phlox/cli/values.h"
#include "phlox/naming/native_names.h"
#include "phlox/recording/writer.h"
#include "phlox/view/view.h"

namespace phlox::cli {

// The user who called us through sudo: our output belongs to them, not to root, and is written with their
// rights.
std::optional<FileUser> recording_owner();

class Destination {
 public:
  struct Options {
    Output output;
    view::Choices choices;  // for the export
    Weighed weighed = Weighed::threads;
    bool show_given = false;  // by --show
    view::Inherited inherited = view::Inherited::hidden;
    bool native = false;  // names native frames at the end
    symbols::DebugSearch debug_search;
    bool source = false;  // a page contains the program's source
    bool append = false;  // to the existing recording
    recording::Retention retention;
    bool force = false;  // an export may replace a recording
  };

  // Proves that everything can be written. `name`: for a recording that was given none.
  static Result<std::unique_ptr<Destination>> open(Options options, const std::string& name);
  // Makes the file.
  Result<void> begin();

  // Valid after begin().
  profile::Sink& sink() { return options_.native ? static_cast<profile::Sink&>(*rows_) : *writer_; }
  // The tasks of the same recording.
  profile::TaskSink& tasks() { return *writer_; }
  // Names the native frames, when the recording is complete.
  std::vector<naming::NativeRows::Missing> name(const std::vector<sampler::NativeModule>& modules);
  // Closes the recording and writes the export from it.
  Result<void> finish();

  const std::string& recording() const { return recording_; }
  // After begin() and before finish(), for any thread: whether there is a recording yet.
  bool has_recording() const { return writer_->has_file(); }
  // After finish(): where the recording is. Empty: nowhere.
  const std::string& where() const { return where_; }
  // After finish(): whether a file that was to be replaced is unchanged.
  bool stays() const { return !writer_->has_file(); }
  // "a.phlox (12 KB), in place of the recording that was there": after finish().
  std::string what_was_written() const;
  // Whether and where an export is made; otherwise the recording is the only output.
  bool exports() const { return exported_ != nullptr; }
  // Remarks of the export.
  const std::vector<std::string>& remarks() const { return remarks_; }
  const std::vector<std::string>& notes() const { return notes_; }
  // The recorded profile; empty before finish(), and for a long recording without an export.
  const profile::Profile& profile() const { return profile_; }
  // What its tasks awaited; empty when profile() is.
  const profile::TaskRows& task_rows() const { return task_rows_; }

 private:
  explicit Destination(Options options) : options_(std::move(options)) {}
  bool is_short() const;
  std::string kept_name(const std::string& name);

  Options options_;
  std::unique_ptr<OutputFile> exported_;
  std::unique_ptr<recording::Writer> writer_;
  std::optional<naming::NativeRows> rows_;
  std::string recording_;
  std::string where_;
  bool kept_ = true;       // next to the export; otherwise it is removed when all went well
  bool appended_ = false;  // to a recording that was there before
  bool replaced_ = false;  // a recording was there before
  profile::Profile profile_;
  profile::TaskRows task_rows_;
  std::vector<std::string> remarks_;
  std::vector<std::string> notes_;
};

}  // namespace phlox::cli
