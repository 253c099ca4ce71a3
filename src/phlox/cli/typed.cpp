#include "phlox/cli/typed.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "phlox/base/nearest.h"
#include "phlox/base/text.h"

namespace phlox::cli {
namespace {

// All options that are valid with a command, or before any.
std::vector<const OptionText*> options_of(const Description& description, const CommandText* command) {
  std::vector<const OptionText*> options;
  for (const OptionText& option : description.phlox.options) options.push_back(&option);
  if (command == nullptr) return options;
  for (const OptionText& option : command->options) options.push_back(&option);
  for (const OptionText& option : command->view_options) options.push_back(&option);
  return options;
}

// "--pid" for "--pid=4711", "-p" for "-p4711": the part of a word that names the option.
std::string spelled(const std::string& word) {
  if (word.starts_with("--")) return word.substr(0, word.find('='));
  return word.size() > 1 && word[0] == '-' ? word.substr(0, 2) : std::string();
}

bool is_named(const OptionText& option, const std::string& name) {
  return std::find(option.names.begin(), option.names.end(), name) != option.names.end();
}

// Other commands that have this option.
std::string commands_with(const Description& description, const std::string& name) {
  std::vector<std::string> names;
  for (const CommandText& command : description.commands) {
    const auto has = [&](const std::vector<OptionText>& options) {
      return std::any_of(options.begin(), options.end(),
                         [&](const OptionText& o) { return is_named(o, name); });
    };
    if (has(command.options) || has(command.view_options)) names.push_back(command.name);
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

}  // namespace

std::string as_typed(const std::vector<std::string>& words, const Description& description,
                     const CommandText* command, const std::string& name) {
  for (const OptionText* option : options_of(description, command)) {
    if (!is_named(*option, name)) continue;
    for (const std::string& word : words) {
      if (is_named(*option, spelled(word))) return spelled(word);
    }
  }
  return name;
}

std::optional<Error> given_twice(const std::vector<std::string>& words, const Description& description,
                                 const CommandText& command) {
  for (const OptionText* option : options_of(description, &command)) {
    if (option->names.empty() || option->value.empty() || option->repeatable) continue;
    std::vector<std::string> given;
    for (const std::string& word : words) {
      if (is_named(*option, spelled(word))) given.push_back(spelled(word));
    }
    if (given.size() < 2) continue;
    if (option->processes) {
      return Error{
          ErrorKind::usage,
          fmt::format("{} is given {} times: this command takes one process", given[0], given.size()),
          fmt::format("several side by side: phlox {0} {1} A & phlox {0} {1} B & wait", command.name,
                      given[0])};
    }
    return Error{ErrorKind::usage,
                 fmt::format("{} is given twice{}", given[0],
                             given[1] == given[0] ? "" : fmt::format(" ({} is the same)", given[1])),
                 fmt::format("phlox {} --help", command.name)};
  }
  return {};
}

Error no_such_option(const std::string& word, const Description& description, const CommandText* command) {
  const std::string name = word.substr(0, word.find('='));
  const std::string help =
      command == nullptr ? "phlox --help" : fmt::format("phlox {} --help", command->name);
  Error error{ErrorKind::usage,
              command == nullptr ? fmt::format("there is no option '{}'", name)
                                 : fmt::format("phlox {} has no option '{}'", command->name, name),
              help};
  std::vector<std::string> names;
  for (const OptionText* option : options_of(description, command)) {
    for (const std::string& one : option->names) {
      // For two letters, only the other case or a missing hyphen counts as similar.
      if (lower_case(one) == lower_case(name) || one == "-" + name) {
        error.hint = fmt::format("did you mean {}?", one);
        return error;
      }
      if (one.starts_with("--")) names.push_back(one);
    }
  }
  if (const std::string others = commands_with(description, name); !others.empty()) {
    error.hint = fmt::format("it is an option of: phlox {}", others);
    return error;
  }
  if (name.size() > 3) {
    if (const auto alike = nearest(name, names, 2); !alike.empty())
      error.hint = fmt::format("did you mean {}?", fmt::join(alike, " or "));
  }
  return error;
}

Error no_such_command(const std::string& word, const Description& description) {
  // Names that other tools use.
  constexpr std::pair<std::string_view, std::string_view> kOtherNames[] = {
      {"ps", "list"},        {"ls", "list"},           {"processes", "list"}, {"attach", "record"},
      {"profile", "record"}, {"run", "record"},        {"stack", "dump"},     {"backtrace", "dump"},
      {"bt", "dump"},        {"flamegraph", "export"}, {"convert", "export"}, {"compare", "diff"},
      {"show", "report"},    {"summary", "report"},    {"check", "doctor"},   {"diagnose", "doctor"}};
  Error error{ErrorKind::usage, fmt::format("there is no command '{}'", word),
              "phlox help lists the commands"};
  std::vector<std::string> names;
  for (const CommandText& command : description.commands) names.push_back(command.name);
  for (const auto& [other, ours] : kOtherNames) {
    if (word == other) error.hint = fmt::format("did you mean phlox {}?", ours);
  }
  if (const auto alike = nearest(word, names); !alike.empty())
    error.hint = fmt::format("did you mean phlox {}?", alike[0]);
  return error;
}

}  // namespace phlox::cli
