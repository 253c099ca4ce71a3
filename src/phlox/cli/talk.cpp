#include "phlox/cli/talk.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "phlox/mcp/json.h"
#include "phlox/report/plain_lines.h"
#include "phlox/report/table.h"

namespace phlox::cli {
namespace {

constexpr std::string_view kRed = "\x1b[1;31m", kYellow = "\x1b[33m", kCyan = "\x1b[36m", kPlain = "\x1b[0m";
constexpr std::string_view kClearLine = "\r\x1b[K";

}  // namespace

Talk::Options Talk::options_for_stderr(bool quiet, bool verbose) {
  Options options;
  options.quiet = quiet;
  options.verbose = verbose;
  const char* terminal = std::getenv("TERM");
  options.terminal =
      ::isatty(STDERR_FILENO) == 1 && terminal != nullptr && std::string_view(terminal) != "dumb";
  const char* no_color = std::getenv("NO_COLOR");
  options.colour = options.terminal && (no_color == nullptr || *no_color == 0);
  const char* messages = std::getenv(kMessages);
  options.json = messages != nullptr && std::string_view(messages) == kJson;
  return options;
}

void Talk::clear() {
  if (!has_progress_) return;
  std::fwrite(kClearLine.data(), 1, kClearLine.size(), stream_);
  has_progress_ = false;
}

void Talk::line(std::string_view colour, std::string_view head, std::string_view text) {
  std::string out;
  if (options_.colour && !colour.empty()) {
    out.append(colour).append(head).append(kPlain);
  } else {
    out.append(head);
  }
  out.append(report::plain_lines(text)).append("\n");
  std::fwrite(out.data(), 1, out.size(), stream_);
  std::fflush(stream_);
}

void Talk::object(std::string_view name, std::string_view text, std::string_view hint) {
  mcp::Json json = mcp::Json::object({{std::string(name), report::plain_lines(text)}});
  if (!hint.empty()) json.set("hint", report::plain_lines(hint));
  const std::string out = mcp::write_json(json) + "\n";
  std::fwrite(out.data(), 1, out.size(), stream_);
  std::fflush(stream_);
}

void Talk::error(const Error& error) {
  if (error.message.empty()) return;
  const std::lock_guard lock(mutex_);
  if (options_.json) return object("error", error.message, error.hint);
  clear();
  line(kRed, "phlox: ", error.message);
  if (!error.hint.empty()) line(kCyan, "hint: ", error.hint);
}

void Talk::warn(std::string_view text) {
  if (options_.quiet) return;
  const std::lock_guard lock(mutex_);
  if (options_.json) return object("warning", text);
  clear();
  line(kYellow, "phlox: warning: ", text);
}

void Talk::note(std::string_view text) {
  if (options_.quiet) return;
  const std::lock_guard lock(mutex_);
  if (options_.json) return object("note", text);
  clear();
  line("", "phlox: ", text);
}

void Talk::lines(std::string_view text) {
  if (options_.quiet) return;
  const std::lock_guard lock(mutex_);
  if (options_.json) return object("lines", text);
  clear();
  const std::string plain = report::plain_lines(text);
  std::fwrite(plain.data(), 1, plain.size(), stream_);
  std::fflush(stream_);
}

void Talk::text(std::string_view text) {
  const std::lock_guard lock(mutex_);
  object("text", text);
}

void Talk::detail(std::string_view text) {
  if (options_.verbose) note(text);
}

void Talk::say(const Message& message) {
  switch (message.kind) {
    case Message::Kind::error:
      return error({ErrorKind::system, message.text, message.hint});
    case Message::Kind::warning:
      return warn(message.text);
    case Message::Kind::note:
      return note(message.text);
    case Message::Kind::detail:
      return detail(message.text);
    case Message::Kind::lines:
      return lines(message.text);
  }
}

void Talk::progress(std::span<const std::string> texts) {
  if (texts.empty() || !shows_progress()) return;
  const std::lock_guard lock(mutex_);
  if (options_.json) return object("progress", texts.back());
  winsize size{};
  const size_t width =
      ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1 ? size.ws_col - 1U : 79U;
  std::string out(kClearLine);
  const auto fits = std::find_if(texts.begin(), texts.end() - 1,
                                 [&](const std::string& text) { return text.size() <= width; });
  out += report::plain(fits->substr(0, width));
  std::fwrite(out.data(), 1, out.size(), stream_);
  std::fflush(stream_);
  has_progress_ = true;
}

}  // namespace phlox::cli
