// Frames as Tachyon names them, in its binary format and in its collapsed text.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "phlox/profile/model.h"

namespace phlox::importers {

// "~" is the file name of Tachyon's markers between frames: <native>, <GC>.
profile::Frame tachyon_frame(std::string_view file, std::string_view function, int64_t line);
// "app.py:Order.total:12", "<native>", "<GC>".
profile::Frame tachyon_frame_of_text(std::string_view text);

}  // namespace phlox::importers
