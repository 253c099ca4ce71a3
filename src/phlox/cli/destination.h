// Where the rows of `phlox record` go while recording, and what is made of them in the end. Nothing that lies
// there is touched before begin(); from then on the recording stays, whatever happens.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "phlox/base/result.h"
#include "phlox/cli/native_names.h"
#include "phlox/cli/output_file.h"
#include "phlox/cli/values.h"
#include "phlox/profile/view.h"
#include "phlox/recording/writer.h"

namespace phlox::cli {

// The user who called us through sudo: what we write is theirs, not root's, and written with their rights.
std::optional<FileUser> recording_owner();

class Destination {
 public:
  struct Options {
    Output output;
    profile::Choices choices;  // of what is exported
    bool show_given = false;   // by --show
    profile::Inherited inherited = profile::Inherited::hidden;
    bool native = false;
    symbols::DebugSearch debug_search;
    bool source = false;  // a page has the program's source in it
    bool append = false;  // to the recording that is there
    recording::Retention retention;
    bool force = false;  // an export may replace a recording
  };

  // Proves that everything can be written. `name`: of a recording that was given none.
  static Result<std::unique_ptr<Destination>> open(Options options, const std::string& name);
  // Makes the file.
  Result<void> begin();

  // After begin().
  profile::Sink& sink() { return options_.native ? static_cast<profile::Sink&>(*rows_) : *writer_; }
  // Of the native frames, when all is recorded.
  std::vector<NativeRows::Missing> name(const std::vector<sampler::NativeModule>& modules);
  // Closes the recording and writes the export from it.
  Result<void> finish();

  const std::string& recording() const { return recording_; }
  // After begin() and before finish(), for any thread: whether there is a recording yet.
  bool has_recording() const { return writer_->has_file(); }
  // After finish(): where the recording is. Empty: nowhere.
  const std::string& where() const { return where_; }
  // After finish(): whether a file that was to be replaced is as it was.
  bool stays() const { return !writer_->has_file(); }
  // "a.phlox (12 KB), in place of the recording that was there": after finish().
  std::string what_was_written() const;
  // Whether something is made of the recording, and where; else the recording is all there is.
  bool exports() const { return exported_ != nullptr; }
  // What the export had to say.
  const std::vector<std::string>& remarks() const { return remarks_; }
  const std::vector<std::string>& notes() const { return notes_; }
  // What was recorded; empty before finish(), and of a long recording that nothing was made of.
  const profile::Profile& profile() const { return profile_; }

 private:
  explicit Destination(Options options) : options_(std::move(options)) {}
  bool is_short() const;
  std::string kept_name(const std::string& name);

  Options options_;
  std::unique_ptr<OutputFile> exported_;
  std::unique_ptr<recording::Writer> writer_;
  std::optional<NativeRows> rows_;
  std::string recording_;
  std::string where_;
  bool kept_ = true;       // beside what was exported; else it goes when all went well
  bool appended_ = false;  // to a recording that was there before
  bool replaced_ = false;  // a recording was there before
  profile::Profile profile_;
  std::vector<std::string> remarks_;
  std::vector<std::string> notes_;
};

}  // namespace phlox::cli
