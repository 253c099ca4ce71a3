// A file that appears completely or not at all: written where no name leads to it, and moved to its place by
// commit(). If we are killed before, it leaves nothing behind. open() proves that it can be written before
// anything starts. Standard output and anything but plain files (a pipe, /dev/stdout) are written directly.
#pragma once

#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "phlox/base/descriptor.h"
#include "phlox/base/file_user.h"
#include "phlox/base/new_file.h"
#include "phlox/base/result.h"

namespace phlox::cli {

// Limits of an output.
struct OutputRules {
  std::optional<FileUser> owner = {};    // the owner of the file (under sudo)
  std::vector<std::string> inputs = {};  // recordings that are read: never written to, under any name
  bool force = false;                    // may replace a recording by another kind of file
  bool text = false;                     // people read it (report/plain_lines.h)
  bool secret = false;                   // only the owner may read it: it contains source
};

class OutputFile {
 public:
  // "-" or "": standard output.
  static Result<std::unique_ptr<OutputFile>> open(const std::string& path, const OutputRules& rules);
  // Without commit() nothing is left behind.
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  // Whether it appears at a place of its own, and not in a pipe or an open descriptor.
  bool is_new_file() const { return new_file_.has_value(); }
  std::ostream& stream();
  // After the last byte: an error if any of them could not be written (disk full, closed pipe).
  Result<void> commit();

 private:
  OutputFile();
  class Buffer;

  Result<void> open_in_place(const std::string& path);
  Result<void> open_replacement(const std::string& path);

  std::string path_;                 // as the user named it, for messages
  std::optional<NewFile> new_file_;  // none: written in place
  std::optional<FileUser> owner_;
  mode_t mode_ = 0;  // of a new file
  bool secret_ = false;
  Descriptor file_;  // for output that is written in place
  int descriptor_ = -1;
  std::unique_ptr<Buffer> buffer_;
  std::unique_ptr<std::ostream> stream_;
};

// "a.svg (12 KB)", for the message about an output; for anything but a file, only its name.
std::string with_size(const std::string& path);

}  // namespace phlox::cli
