#include "phlox/cli/run.h"

#include <fmt/format.h>

#include <csignal>

#include "phlox/base/stack_limit.h"
#include "phlox/cli/command_line.h"
#include "phlox/cli/commands.h"
#include "phlox/cli/exit_status.h"
#include "phlox/cli/features.h"
#include "phlox/cli/last_resort.h"
#include "phlox/cli/output_file.h"
#include "phlox/cli/typed.h"

namespace phlox::cli {
namespace {

int print(const std::string& text, Talk& talk) {
  auto out = OutputFile::open("-", {.text = true});
  (*out)->stream() << text;
  return status_of((*out)->commit(), talk);
}

int say_error(const Error& error, Talk& talk) {
  talk.error(error);
  return exit_status(error.kind);
}

int help(const std::string& command, Talk& talk) {
  if (command.empty()) return print(overview_text(description()), talk);
  const CommandText* text = description().find(command);
  if (text != nullptr) return print(help_text(description(), *text), talk);
  return say_error(no_such_command(command, description()), talk);
}

int dispatch(const CommandLine& line, Talk& talk) {
  // A closed reader (head) is a write error and must not end phlox. Not for record and top: a program would
  // inherit it.
  if (line.command != "record" && line.command != "top") std::signal(SIGPIPE, SIG_IGN);
  if (line.global.version)
    return print(fmt::format("phlox {}\n{}\n", PHLOX_VERSION, features_line(features())), talk);
  if (line.command == "help" && !line.global.help) return help(line.help.command, talk);
  if (line.global.help) return help(line.command, talk);
  if (line.command == "record") return record(line, talk);
  if (line.command == "export") return export_recording(line, talk);
  if (line.command == "view") return view(line, talk);
  if (line.command == "list") return list(line, talk);
  if (line.command == "import") return import_recording(line, talk);
  if (line.command == "dump") return dump(line, talk);
  if (line.command == "top") return top(line, talk);
  if (line.command == "snapshot") return snapshot(line, talk);
  if (line.command == "label") return label(line, talk);
  if (line.command == "doctor") return doctor(line, talk);
  if (line.command == "report") return report(line, talk);
  if (line.command == "diff") return diff(line, talk);
  if (line.command == "query") return query(line, talk);
  if (line.command == "mcp") return mcp(line, talk);
  if (line.command == "agent") return agent(line, talk);
  if (line.command == "man") return print(man_page(description()), talk);
  if (line.command == "completions") {
    const auto text = completions(description(), line.completions.shell);
    return text ? print(*text, talk) : say_error(text.error(), talk);
  }
  return say_error({ErrorKind::usage, "which command?", "phlox help lists the commands"}, talk);
}

int run_words(const std::vector<std::string>& words) {
  // Pyflame's command line differs from ours: `phlox pyflame ...`, or a link named pyflame.
  const bool by_name = !words.empty() && (words[0] == "pyflame" || words[0].ends_with("/pyflame"));
  if (by_name || (words.size() > 1 && words[1] == "pyflame")) {
    Talk talk(stderr, Talk::options_for_stderr(false, false));
    return pyflame(by_name ? words : std::vector<std::string>(words.begin() + 1, words.end()), talk);
  }
  const auto line = parse_command_line({words.begin() + (words.empty() ? 0 : 1), words.end()});
  Talk talk(stderr, Talk::options_for_stderr(line && line->global.quiet, line && line->global.verbose));
  if (!line) return say_error(line.error(), talk);
  return dispatch(*line, talk);
}

}  // namespace

int status_of(const Result<void>& done, Talk& talk) {
  return done ? kSuccess : say_error(done.error(), talk);
}

int run(const std::vector<std::string>& words) {
  install_last_resort();
  try {
    if (!ensure_stack()) {
      Talk talk(stderr, Talk::options_for_stderr(false, false));
      return say_error(
          {ErrorKind::system, "the limit of the stack is smaller than the 1 MiB that phlox needs",
           "ulimit -s 8192, or run phlox where the hard limit (ulimit -Hs) allows it"},
          talk);
    }
    return run_words(words);
  } catch (...) {
    const FailureWords failure = words_of_current_exception();
    Talk talk(stderr, Talk::options_for_stderr(false, false));
    return say_error({ErrorKind::system, failure.message, failure.hint}, talk);
  }
}

}  // namespace phlox::cli
