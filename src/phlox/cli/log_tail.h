// Follows a log file for lines that match a regular expression: from its end at the start, and into the file
// that takes its place when it is rotated. One thread calls it.
#pragma once

#include <sys/types.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "phlox/base/descriptor.h"
#include "phlox/base/file_user.h"
#include "phlox/base/result.h"
#include "phlox/incidents/log_lines.h"

namespace re2 {
class RE2;
}

namespace phlox::cli {

class LogTail {
 public:
  // `user`: with whose rights it is read. ErrorKind::usage: no regular expression; ErrorKind::input: the file
  // cannot be read.
  static Result<std::unique_ptr<LogTail>> open(const std::string& file, const std::string& regex,
                                               const std::optional<FileUser>& user);
  ~LogTail();

  // The first of the new lines that matches; none: there is none. Reads a limited number of bytes.
  std::optional<std::string> next_match();
  // Once: what has the log's name now may not be read, because another user may have chosen it.
  bool take_refused() { return std::exchange(refused_, false); }

 private:
  LogTail() = default;
  Descriptor find_fresh();
  bool read_some(std::optional<std::string>& found, size_t& budget);

  std::string path_;
  std::optional<FileUser> user_;
  std::unique_ptr<re2::RE2> regex_;
  Descriptor file_;
  off_t at_ = 0;
  bool refused_ = false, was_refused_ = false;
  incidents::LogLines lines_;
};

}  // namespace phlox::cli
