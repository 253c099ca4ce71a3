// Which options the words of a command line name, and how the user spelled them: for messages that speak of
// what was typed, and for words that are no option at all. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "phlox/base/result.h"
#include "phlox/cli/description.h"

namespace phlox::cli {

// The option `name` ("--pid") as it stands among the words ("-p"); else its own name.
std::string as_typed(const std::vector<std::string>& words, const Description& description,
                     const CommandText* command, const std::string& name);

// An option with one value that is there twice. The last one would win without a word.
std::optional<Error> given_twice(const std::vector<std::string>& words, const Description& description,
                                 const CommandText& command);

// `word` is none of the command's options: what may have been meant.
Error no_such_option(const std::string& word, const Description& description, const CommandText* command);
Error no_such_command(const std::string& word, const Description& description);

}  // namespace phlox::cli
