// All output on standard error: errors, warnings, notes, the progress line. Data never goes through here. Any
// thread may call it. The caller escapes control characters of foreign text.
#pragma once

#include <cstdint>
#include <cstdio>
#include <mutex>
#include <span>
#include <string>
#include <string_view>

#include "phlox/base/result.h"

namespace phlox::cli {

struct Message {
  enum class Kind : uint8_t { error, warning, note, detail, lines };
  Kind kind = Kind::note;
  std::string text;
  std::string hint = {};  // of an error
  friend bool operator==(const Message&, const Message&) = default;
};

class Talk {
 public:
  struct Options {
    bool quiet = false;
    bool verbose = false;
    bool terminal = false;  // colours and a progress line
    bool colour = false;
    // For phlox mcp, which runs commands: one JSON object for each message, with one of the members error
    // (and hint), warning, note, lines, text, progress.
    bool json = false;
  };
  // The variable that asks for that, and its value.
  static constexpr const char* kMessages = "PHLOX_MESSAGES";
  static constexpr const char* kJson = "json";
  // For standard error as it is: a terminal or not, NO_COLOR (no-color.org) set or not.
  static Options options_for_stderr(bool quiet, bool verbose);

  Talk(std::FILE* stream, Options options) : stream_(stream), options_(options) {}

  // "phlox: MESSAGE", then "hint: HINT". Always printed, except an empty message: the reader of our output
  // has gone.
  void error(const Error& error);
  void warn(std::string_view text);    // unless quiet
  void note(std::string_view text);    // unless quiet
  void lines(std::string_view text);   // unless quiet; unchanged
  void detail(std::string_view text);  // when verbose
  void say(const Message& message);
  // One line that replaces itself; on terminals only. The first of these that fits the terminal's width, or
  // the beginning of the last.
  void progress(std::span<const std::string> texts);
  bool says_details() const { return options_.verbose; }
  bool shows_progress() const { return (options_.terminal || options_.json) && !options_.quiet; }
  // Whether who reads the JSON on standard output also wants what people read instead.
  bool wants_text() const { return options_.json; }
  void text(std::string_view text);

 private:
  void line(std::string_view colour, std::string_view head, std::string_view text);
  void object(std::string_view name, std::string_view text, std::string_view hint = {});
  void clear();

  std::FILE* stream_;
  Options options_;
  std::mutex mutex_;
  bool has_progress_ = false;
};

}  // namespace phlox::cli
