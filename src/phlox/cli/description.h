// Description of every command as data: --help, the man page and the shell completions are written from it.
// grammar.h makes it together with the parser. Pure text; prints nothing itself.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "phlox/base/result.h"

namespace phlox::cli {

struct OptionText {
  std::vector<std::string> names = {};    // "-p", "--pid"; empty: a positional argument
  std::string value = {};                 // "PID"; empty: a flag
  std::string text = {};                  // one sentence, with its default
  std::vector<std::string> choices = {};  // the only values, if there are few
  bool file = false;                      // completed with file names
  bool repeatable = false;                // may be given several times
  bool processes = false;                 // completed with the ids of running Pythons
  std::string older = {};                 // a name that still works, and is not listed
  std::vector<std::string> items = {};    // if the value is a list of these, separated by commas
};

struct Example {
  std::string line;
  std::string why;
};

struct CommandText {
  std::string name;      // "record"; empty: phlox itself
  std::string summary;   // half a line: its task
  std::string synopsis;  // after the name: "[options] -p PID | -- COMMAND..."
  std::vector<Example> examples;
  std::vector<OptionText> options;
  std::vector<OptionText> view_options;  // shared: the choices of a view
  std::string more;                      // after the options; whole paragraphs
};

struct Description {
  CommandText phlox;                  // its options are those of every command
  std::vector<CommandText> commands;  // in the order of the help

  const CommandText* find(std::string_view name) const;
};

// Examples first, then the rest.
std::string help_text(const Description& description, const CommandText& command);
std::string overview_text(const Description& description);
// troff, man(7).
std::string man_page(const Description& description);
// "bash", "zsh", "fish".
Result<std::string> completions(const Description& description, std::string_view shell);

}  // namespace phlox::cli
