// What is said on standard error: errors, warnings, what was done, the progress line. Data never goes through
// here. Any thread may call it. Control characters that come from outside are the business of who formats the
// text.
#pragma once

#include <cstdio>
#include <mutex>
#include <span>
#include <string>
#include <string_view>

#include "phlox/base/result.h"

namespace phlox::cli {

class Talk {
 public:
  struct Options {
    bool quiet = false;
    bool verbose = false;
    bool terminal = false;  // colours and a progress line
    bool colour = false;
  };
  // For standard error as it is: a terminal or not, NO_COLOR (no-color.org) set or not.
  static Options options_for_stderr(bool quiet, bool verbose);

  Talk(std::FILE* stream, Options options) : stream_(stream), options_(options) {}

  // "phlox: MESSAGE", then "hint: HINT". Always said, but for an empty message, of which there is nothing to
  // say: whoever read our output has gone.
  void error(const Error& error);
  void warn(std::string_view text);    // unless quiet
  void note(std::string_view text);    // unless quiet
  void lines(std::string_view text);   // unless quiet; as they are
  void detail(std::string_view text);  // when verbose
  // One line that replaces itself; on terminals only. The first of these that the terminal is wide enough
  // for, or what it has room for of the last.
  void progress(std::span<const std::string> texts);
  bool says_details() const { return options_.verbose; }
  bool shows_progress() const { return options_.terminal && !options_.quiet; }

 private:
  void line(std::string_view colour, std::string_view head, std::string_view text);
  void clear();

  std::FILE* stream_;
  Options options_;
  std::mutex mutex_;
  bool has_progress_ = false;
};

}  // namespace phlox::cli
