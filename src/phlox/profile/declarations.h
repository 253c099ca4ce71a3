// Where a native function is declared, when that is another file than the one that its line is in: an
// included one, a macro's, one that #line names. Frames keep the file of their line; facts of the recording
// (meta) say the rest, one for each function and file. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "phlox/profile/profile.h"

namespace phlox::profile {

// The key of the fact whose value is the file of the declaration.
std::string declaration_key(std::string_view function, int32_t first_line, std::string_view file);

bool is_declaration(std::string_view key);

// The file in which a frame's function is declared, of which `first_line` is a line.
const std::string& declared_in(const Profile& profile, const Frame& frame);

}  // namespace phlox::profile
