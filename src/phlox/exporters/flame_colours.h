// The colour class of a box, by its package or module, so that the same code has the same colour in every
// picture, on every machine. web/src/colours.ts computes the same; the fills are in web/src/flame.css.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "phlox/view/view.h"

namespace phlox::exporters {

// FNV-1a, 32 bits.
uint32_t colour_hash(std::string_view text);

// "p3b": a Python frame, hue 3, tint b; "n…": native, "k": kernel, "m": a marker. `name` and `module` are the
// displayable ones, because the script sees those.
std::string colour_class(profile::FrameKind kind, std::string_view module, std::string_view name);

// In a difference: "r1" to "r5" for a share that grew, "b1" to "b5" for one that shrank, "d0" for neither.
std::string difference_class(int8_t step);

}  // namespace phlox::exporters
