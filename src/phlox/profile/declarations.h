// The file in which a native function is declared, if that is not the file of its line: an included file, a
// macro's, one that #line names. Frames keep the file of their line; facts of the recording (meta) have the
// declaration, one for each function and file. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "phlox/profile/profile.h"

namespace phlox::profile {

// The key of the fact; its value is the file of the declaration.
std::string declaration_key(std::string_view function, int32_t first_line, std::string_view file);

bool is_declaration(std::string_view key);

// The file in which a frame's function is declared; `first_line` is a line of it.
const std::string& declared_in(const Profile& profile, const Frame& frame);

}  // namespace phlox::profile
