#include "phlox/cli/command_line.h"

#include <fmt/format.h>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>
#include <cctype>
#include <utility>

#include "phlox/cli/grammar.h"
#include "phlox/cli/typed.h"
#include "phlox/cli/values.h"

namespace phlox::cli {
namespace {

// CLI11's sentences begin with a capital letter, end inconsistently, and call an option by its longest name.
std::string as_message(std::string text, const std::vector<std::string>& words,
                       const Description& description, const CommandText* command) {
  while (!text.empty() && (text.back() == '\n' || text.back() == '.')) text.pop_back();
  if (const size_t colon = text.find(':'); text.starts_with("--") && colon != std::string::npos) {
    const std::string name = as_typed(words, description, command, text.substr(0, colon));
    // "--pid: 1 required TEXT missing".
    if (text.find(": 1 required ") == colon && text.ends_with(" missing")) return name + " needs a value";
    return name + text.substr(colon);
  }
  if (!text.empty()) text[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(text[0])));
  return text;
}

// The error for an unexpected `word`.
Error one_too_many(const std::string& word, const Description& description, const CommandText* command) {
  if (word.starts_with("-") && word.size() > 1) return no_such_option(word, description, command);
  if (command == nullptr) return no_such_command(word, description);
  // A program without "--" before it: its options could be mistaken for ours.
  if (command->name == "record" && parse_pid(word)) {
    return {ErrorKind::usage, fmt::format("'{}' was not expected: each process has its own -p", word),
            "phlox record -p A -p B"};
  }
  if (command->name == "record") {
    return {ErrorKind::usage, fmt::format("'{}' was not expected", word),
            "a program to start follows after --: phlox record -- python3 app.py"};
  }
  if (std::any_of(word.begin(), word.end(), [](char c) { return c < '0' || c > '9'; }) ||
      command->name != "dump") {
    return {ErrorKind::usage, fmt::format("'{}' is one argument too many", word),
            fmt::format("phlox {} {}", command->name, command->synopsis)};
  }
  return {ErrorKind::usage, fmt::format("'{}' was not expected", word),
          fmt::format("phlox dump -p {}", word)};
}

}  // namespace

Result<CommandLine> parse_command_line(const std::vector<std::string>& words) {
  Grammar grammar;
  const auto separator = std::find(words.begin(), words.end(), "--");
  const auto named = std::find_if(words.begin(), separator, [&](const std::string& word) {
    return grammar.description.find(word) != nullptr;
  });
  // In diff, "--" separates the two sides, and options may follow it.
  const bool sides = named != separator && *named == "diff" && separator != words.end();
  const auto dashes = sides ? words.end() : separator;
  const std::vector<std::string> typed(words.begin(), dashes);
  std::vector<std::string> ours(typed.rbegin(), typed.rend());  // in the parser's order
  if (sides) std::replace(ours.begin(), ours.end(), std::string("--"), std::string(kSides));
  const auto chosen = [&] {
    const auto& subcommands = grammar.app.get_subcommands();
    return subcommands.empty() ? std::string() : subcommands.front()->get_name();
  };
  const CommandText* command = nullptr;  // the first word that names a command
  for (const std::string& word : typed) {
    if (command == nullptr) command = grammar.description.find(word);
  }
  if (command != nullptr) {
    if (auto twice = given_twice(typed, grammar.description, *command))
      return tl::unexpected<Error>(*std::move(twice));
  }
  try {
    grammar.app.parse(ours);
  } catch (const CLI::ExtrasError& error) {
    auto extras = grammar.app.remaining(true);
    // An unknown option first: its value is an extra word too. Without a known command, the first word.
    const auto word = std::find_if(extras.begin(), extras.end(), [&](const std::string& extra) {
      return extra.starts_with("-") == (command != nullptr || extras.size() == 1);
    });
    if (word == extras.end() && !extras.empty())
      return tl::unexpected<Error>(one_too_many(extras.front(), grammar.description, command));
    if (word != extras.end()) return tl::unexpected<Error>(one_too_many(*word, grammar.description, command));
    return fail(ErrorKind::usage, as_message(error.what(), typed, grammar.description, command),
                "phlox --help");
  } catch (const CLI::ParseError& error) {
    return fail(ErrorKind::usage, as_message(error.what(), typed, grammar.description, command),
                command == nullptr ? "phlox --help" : fmt::format("phlox {} --help", command->name));
  }
  CommandLine line = std::move(grammar.line);
  line.command = chosen();
  line.has_program = dashes != words.end();
  if (line.has_program) line.program.assign(dashes + 1, words.end());
  if (line.has_program && line.command != "record" && line.command != "top" && !line.global.help) {
    return fail(ErrorKind::usage, "only record and top take a program after --",
                "phlox record -- python3 app.py");
  }
  line.text = fmt::format("phlox {}", fmt::join(words, " "));
  for (const auto& option : command == nullptr ? std::vector<OptionText>() : command->options) {
    for (const std::string& name : option.names)
      line.typed[name] = as_typed(typed, grammar.description, command, name);
  }
  return line;
}

const Description& description() {
  static const Description kDescription = Grammar().description;
  return kDescription;
}

}  // namespace phlox::cli
