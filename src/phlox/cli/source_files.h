// The program's source for `--source`: the files as they are here today.
#pragma once

#include <optional>
#include <string>

namespace phlox::cli {

// Nothing where it is not there, too long, or no source by its name: a recording may come from anybody, and
// what it names is put into a page that is passed on.
std::optional<std::string> read_source(const std::string& file);

}  // namespace phlox::cli
