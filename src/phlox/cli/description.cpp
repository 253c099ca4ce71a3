#include "phlox/cli/description.h"

#include <fmt/format.h>

#include <algorithm>

#include "phlox/base/text.h"

namespace phlox::cli {
namespace {

// Wide enough for our longest option, narrow enough for a terminal of 80 columns.
constexpr size_t kOptionColumn = 26;
constexpr size_t kWidth = 100;

std::string wrapped(std::string_view text, size_t indent, size_t first) {
  std::string out;
  size_t column = first;
  while (!text.empty()) {
    const size_t blank = text.find(' ');
    const std::string_view word = text.substr(0, blank);
    text.remove_prefix(blank == std::string_view::npos ? text.size() : blank + 1);
    if (column > indent && column + 1 + word.size() > kWidth) {
      out += "\n" + std::string(indent, ' ');
      column = indent;
    } else if (column > indent) {
      out += ' ';
      ++column;
    }
    out += word;
    column += word.size();
  }
  return out;
}

std::string left_column(const OptionText& option) {
  std::string names = option.names.empty() ? option.value : fmt::format("{}", fmt::join(option.names, ", "));
  if (!option.names.empty() && !option.value.empty()) names += " " + option.value;
  return names;
}

std::string option_lines(const std::vector<OptionText>& options) {
  std::string out;
  for (const OptionText& option : options) {
    std::string left = "  " + left_column(option);
    if (left.size() + 2 > kOptionColumn) {
      left += "\n" + std::string(kOptionColumn, ' ');
    } else {
      left.resize(kOptionColumn, ' ');
    }
    std::string text = option.text;
    if (!option.choices.empty() && text.find(option.choices.back()) == std::string::npos) {
      text += fmt::format(": {}", fmt::join(option.choices, ", "));
    }
    out += left + wrapped(text, kOptionColumn, kOptionColumn) + "\n";
  }
  return out;
}

std::string example_lines(const std::vector<Example>& examples) {
  std::string out;
  for (const Example& example : examples) out += fmt::format("  {}\n      {}\n", example.line, example.why);
  return out;
}

std::string paragraphs(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const size_t end = text.find("\n\n");
    out += "\n" + wrapped(text.substr(0, end), 0, 0) + "\n";
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 2);
  }
  return out;
}

// groff: a backslash is written \e, a minus that can be copied \-, and no line may begin with a request.
std::string troff(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '\\') {
      out += "\\e";
    } else if (c == '-') {
      out += "\\-";
    } else if ((c == '.' || c == '\'') && (out.empty() || out.back() == '\n')) {
      out += "\\&";
      out += c;
    } else {
      out += c;
    }
  }
  return out;
}

std::string troff_options(const std::vector<OptionText>& options) {
  std::string out;
  for (const OptionText& option : options) {
    out += fmt::format(".TP\n\\fB{}\\fR\n{}\n", troff(left_column(option)), troff(option.text));
    if (!option.choices.empty())
      out += fmt::format("({})\n", troff(fmt::format("{}", fmt::join(option.choices, ", "))));
  }
  return out;
}

std::vector<OptionText> all_options(const Description& description, const CommandText& command) {
  std::vector<OptionText> options = command.options;
  options.insert(options.end(), command.view_options.begin(), command.view_options.end());
  options.insert(options.end(), description.phlox.options.begin(), description.phlox.options.end());
  return options;
}

std::string command_names(const Description& description) {
  std::vector<std::string> names;
  for (const CommandText& command : description.commands) names.push_back(command.name);
  return fmt::format("{}", fmt::join(names, " "));
}

// The completion script's commands for an option's value.
std::string bash_value(const OptionText& option) {
  if (!option.choices.empty())
    return fmt::format("COMPREPLY=($(compgen -W '{}' -- \"$word\")); return", fmt::join(option.choices, " "));
  if (!option.items.empty()) return fmt::format("_phlox_list '{}'; return", fmt::join(option.items, " "));
  if (option.processes) return "_phlox_pids; return";
  if (!option.file) return "return";  // nothing to offer
  // A positional argument is a recording.
  return option.names.empty() ? "_phlox_recordings; return"
                              : "COMPREPLY=($(compgen -f -- \"$word\")); return";
}

constexpr const char* kBashHelpers =
    "_phlox_pids() {\n"
    "  COMPREPLY=($(compgen -W \"$(phlox list 2>/dev/null | awk 'NR > 1 {print $1}')\" -- \"$word\"))\n"
    "}\n"
    "_phlox_list() {\n"
    "  local before=\n"
    "  [[ $word == *,* ]] && before=${word%,*},\n"
    "  COMPREPLY=($(compgen -P \"$before\" -W \"$1\" -- \"${word##*,}\"))\n"
    "  compopt -o nospace 2>/dev/null\n"
    "}\n"
    "_phlox_recordings() {\n"
    "  COMPREPLY=($(compgen -f -X '!*.phlox' -- \"$word\") $(compgen -d -S / -- \"$word\"))\n"
    "}\n";

std::string bash(const Description& description) {
  std::string cases;
  for (const CommandText& command : description.commands) {
    std::vector<std::string> words;
    std::string values;
    for (const OptionText& option : all_options(description, command)) {
      words.insert(words.end(), option.names.begin(), option.names.end());
      if (option.value.empty() || option.names.empty()) continue;
      values += fmt::format("        {}) {};;\n", fmt::join(option.names, "|"), bash_value(option));
    }
    std::string free = "COMPREPLY=()";
    for (const OptionText& one : command.options) {
      if (one.names.empty()) free = bash_value(one);
    }
    if (command.name == "help")
      free = fmt::format("COMPREPLY=($(compgen -W '{}' -- \"$word\"))", command_names(description));
    cases += fmt::format(
        "    {})\n      case $before in\n{}      esac\n      if [[ $word == -* ]]; then "
        "COMPREPLY=($(compgen "
        "-W '{}' -- \"$word\")); else {}; fi;;\n",
        command.name, values, fmt::join(words, " "), free);
  }
  return fmt::format(
      "# bash completion of phlox {}, written by: phlox completions bash\n"
      "{}"
      "_phlox() {{\n"
      "  local word=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD-1]}} command= i\n"
      "  COMPREPLY=()\n"
      "  for ((i = 1; i < COMP_CWORD; i++)); do\n"
      "    case ${{COMP_WORDS[i]}} in\n"
      "      --) COMPREPLY=($(compgen -c -f -- \"$word\")); return;;\n"
      "      -*) ;;\n"
      "      *) [[ $command ]] || command=${{COMP_WORDS[i]}};;\n"
      "    esac\n"
      "  done\n"
      "  case $command in\n"
      "{}"
      "    *) COMPREPLY=($(compgen -W '{} {}' -- \"$word\"));;\n"
      "  esac\n"
      "}}\n"
      "complete -o filenames -F _phlox phlox\n",
      PHLOX_VERSION, kBashHelpers, cases, command_names(description), "--help --version");
}

std::string zsh(const Description& description) {
  const auto quoted_text = [](std::string text) {
    // In _arguments, colons and brackets are special.
    std::string out;
    for (const char c : text) {
      if (c == ':' || c == '[' || c == ']' || c == '\\') out += '\\';
      out += c;
    }
    return out;
  };
  std::string cases;
  for (const CommandText& command : description.commands) {
    std::string specs;
    for (const OptionText& option : all_options(description, command)) {
      std::string action;
      if (!option.value.empty()) {
        action = fmt::format(":{}:{}", option.value,
                             !option.choices.empty() ? fmt::format("({})", fmt::join(option.choices, " "))
                             : !option.items.empty() ? fmt::format("_values -s , {} {}", option.value,
                                                                   fmt::join(option.items, " "))
                             : option.processes      ? "_phlox_pids"
                             : option.file && option.names.empty() ? "_files -g \"*.phlox\""
                             : option.file                         ? "_files"
                                                                   : " ");
      }
      if (option.names.empty()) {
        specs += fmt::format(" \\\n        {}", single_quoted(action.empty() ? ":" : action));
      }
      for (const std::string& name : option.names) {
        specs += fmt::format(" \\\n        {}",
                             single_quoted(fmt::format("{}[{}]{}", name, quoted_text(option.text), action)));
      }
    }
    if (command.name == "record") specs += " \\\n        '*::: :_normal'";
    cases += fmt::format("      {})\n        _arguments{};;\n", command.name, specs);
  }
  std::string commands;
  for (const CommandText& command : description.commands) {
    commands += fmt::format("      {}\n", single_quoted(command.name + ":" + command.summary));
  }
  return fmt::format(
      "#compdef phlox\n# zsh completion of phlox {}, written by: phlox completions zsh\n"
      "_phlox_pids() {{\n"
      "  local -a pids=(${{(f)\"$(phlox list 2>/dev/null | awk 'NR > 1 {{p = $1; $1 = $2 = $3 = $4 = \"\"; "
      "print p \":\" $0}}')\"}})\n"
      "  _describe pid pids\n}}\n"
      "_phlox() {{\n"
      "  local -a commands=(\n{}  )\n"
      "  if (( CURRENT == 2 )); then\n    _describe command commands\n  else\n"
      "    local command=$words[2]\n    shift words\n    (( CURRENT-- ))\n"
      "    case $command in\n{}    esac\n  fi\n}}\n_phlox \"$@\"\n",
      PHLOX_VERSION, commands, cases);
}

std::string fish(const Description& description) {
  std::string out =
      fmt::format("# fish completion of phlox {}, written by: phlox completions fish\n", PHLOX_VERSION);
  out +=
      "complete -c phlox -f\n"
      "function __phlox_pids\n"
      "  phlox list 2>/dev/null | awk 'NR > 1 {p = $1; $1 = $2 = $3 = $4 = \"\"; print p \"\\t\" $0}'\n"
      "end\n";
  const auto no_command = fmt::format("not __fish_seen_subcommand_from {}", command_names(description));
  for (const CommandText& command : description.commands) {
    out += fmt::format("complete -c phlox -n {} -a {} -d {}\n", single_quoted(no_command), command.name,
                       single_quoted(command.summary));
    const std::string here = single_quoted("__fish_seen_subcommand_from " + command.name);
    for (const OptionText& option : all_options(description, command)) {
      std::string names;
      for (const std::string& name : option.names) {
        names += name.starts_with("--") ? fmt::format(" -l {}", name.substr(2))
                                        : fmt::format(" -s {}", name.substr(1));
      }
      std::string values;
      if (!option.choices.empty())
        values = fmt::format(" -a {}", single_quoted(fmt::format("{}", fmt::join(option.choices, " "))));
      if (!option.items.empty())
        values = fmt::format(
            " -a {}", single_quoted(fmt::format("(__fish_append , {})", fmt::join(option.items, " "))));
      if (option.processes) values = " -a '(__phlox_pids)'";
      if (!option.names.empty() && !option.value.empty()) values += option.file ? " -r -F" : " -x";
      if (option.names.empty() && option.file) values += " -k -a '(__fish_complete_suffix .phlox)'";
      out +=
          fmt::format("complete -c phlox -n {}{}{} -d {}\n", here, names, values, single_quoted(option.text));
    }
  }
  return out;
}

}  // namespace

const CommandText* Description::find(std::string_view name) const {
  const auto found =
      std::find_if(commands.begin(), commands.end(), [&](const CommandText& c) { return c.name == name; });
  return found == commands.end() ? nullptr : &*found;
}

std::string help_text(const Description& description, const CommandText& command) {
  std::string out =
      fmt::format("Examples:\n{}\nphlox {}: {}\n\nUsage: phlox {} {}\n", example_lines(command.examples),
                  command.name, command.summary, command.name, command.synopsis);
  if (!command.options.empty()) out += "\nOptions:\n" + option_lines(command.options);
  if (!command.view_options.empty()) out += "\nChoices of the view:\n" + option_lines(command.view_options);
  out += "\nOptions of every command:\n" + option_lines(description.phlox.options);
  out += paragraphs(command.more);
  return out;
}

std::string overview_text(const Description& description) {
  std::string out = "Examples:\n";
  // The first example of each of the three commands that most people need.
  for (const char* name : {"record", "export", "dump"}) {
    if (const CommandText* command = description.find(name))
      out += example_lines({command->examples.front()});
  }
  out +=
      fmt::format("\nphlox {}\n\nUsage: phlox COMMAND [options]\n\nCommands:\n", description.phlox.summary);
  for (const CommandText& command : description.commands) {
    std::string left = "  " + command.name;
    left.resize(16, ' ');
    out += left + command.summary + "\n";
  }
  out += "\nOptions of every command:\n" + option_lines(description.phlox.options);
  out += "\nphlox COMMAND --help tells more. Exit statuses: docs/exit-status.md, or phlox man.\n";
  return out;
}

std::string man_page(const Description& description) {
  std::string out = fmt::format(".TH PHLOX 1 \"\" \"phlox {}\"\n.SH NAME\nphlox \\- {}\n.SH SYNOPSIS\n",
                                PHLOX_VERSION, troff(description.phlox.summary));
  for (const CommandText& command : description.commands) {
    out += fmt::format(".B phlox {}\n{}\n.br\n", command.name, troff(command.synopsis));
  }
  out += ".SH COMMANDS\n";
  for (const CommandText& command : description.commands) {
    out += fmt::format(".SS phlox {}\n{}\n", command.name, troff(command.summary));
    for (const Example& example : command.examples)
      out += fmt::format(".TP\n.B {}\n{}\n", troff(example.line), troff(example.why));
    if (!command.options.empty()) out += ".PP\nOptions:\n" + troff_options(command.options);
    if (!command.view_options.empty()) out += ".PP\nChoices of the view: see below.\n";
    if (!command.more.empty()) {
      std::string_view more = command.more;
      while (!more.empty()) {
        const size_t end = more.find("\n\n");
        out += ".PP\n" + troff(more.substr(0, end)) + "\n";
        more.remove_prefix(end == std::string_view::npos ? more.size() : end + 2);
      }
    }
  }
  out += ".SH CHOICES OF THE VIEW\n";
  if (const CommandText* command = description.find("export")) out += troff_options(command->view_options);
  out += ".SH OPTIONS OF EVERY COMMAND\n" + troff_options(description.phlox.options);
  out +=
      ".SH EXIT STATUS\n.TP\n0\ndone\n.TP\n2\nthe command line is wrong\n.TP\n3\nphlox diff "
      "\\-\\-fail\\-if: a condition holds\n.TP\n4\nphlox diff \\-\\-fail\\-if: a condition names a function "
      "that is in no recording\n"
      ".TP\n111 to 119\nno such process, not a Python, a Python not covered, no permission, process gone, "
      "state of the process, output, input, "
      "system\n.TP\n127\nthe program to start cannot be started\n.TP\n128 + N\nended by signal N\n.PP\n"
      "phlox record \\-\\- COMMAND ends with the status of COMMAND.\n"
      ".SH ENVIRONMENT\n.TP\nNO_COLOR\nwhen set, no colours on standard error\n";
  return out;
}

Result<std::string> completions(const Description& description, std::string_view shell) {
  if (shell == "bash") return bash(description);
  if (shell == "zsh") return zsh(description);
  if (shell == "fish") return fish(description);
  return fail(ErrorKind::usage,
              shell.empty() ? "completions of which shell?" : fmt::format("no completions for '{}'", shell),
              "phlox completions bash, zsh or fish");
}

}  // namespace phlox::cli
