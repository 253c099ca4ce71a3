// The flame graph as one self-contained SVG: boxes that any viewer shows, and a script that redraws them in a
// browser from the embedded tree and handles clicks and keys. No network, no other file.
#pragma once

#include <ostream>

#include "phlox/exporters/flame_picture.h"

namespace phlox::exporters {

void write_flame_svg(const FlamePicture& picture, std::ostream& out);

}  // namespace phlox::exporters
