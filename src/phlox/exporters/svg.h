// The flame graph as one self-contained SVG: boxes that any viewer shows, and a script that, in a browser,
// redraws them from the embedded tree and makes them answer. No network, nothing beside the file.
#pragma once

#include <ostream>

#include "phlox/exporters/flame_picture.h"

namespace phlox::exporters {

void write_flame_svg(const FlamePicture& picture, std::ostream& out);

}  // namespace phlox::exporters
