// What web/ was bundled into at build time (cmake/web.cmake), as bytes that live as long as the program.
#pragma once

#include <string_view>

namespace phlox::exporters::web {

std::string_view flame_svg_script();  // web/src/svg/flame_svg.ts and all it imports
std::string_view flame_style();       // web/src/flame.css

}  // namespace phlox::exporters::web
