// Which options the words of a command line name, and how the user spelled them: for messages, and for words
// that are no option at all. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "phlox/base/result.h"
#include "phlox/cli/description.h"

namespace phlox::cli {

// The option `name` ("--pid") as the user wrote it ("-p"); otherwise its own name.
std::string as_typed(const std::vector<std::string>& words, const Description& description,
                     const CommandText* command, const std::string& name);

// A single-valued option that is given twice. Otherwise the last one would win silently.
std::optional<Error> given_twice(const std::vector<std::string>& words, const Description& description,
                                 const CommandText& command);

// `word` is none of the command's options: suggests the intended one.
Error no_such_option(const std::string& word, const Description& description, const CommandText* command);
Error no_such_command(const std::string& word, const Description& description);

}  // namespace phlox::cli
