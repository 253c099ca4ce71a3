// The bundles made of web/ at build time (cmake/web.cmake), as bytes that live as long as the program.
#pragma once

#include <string_view>

namespace phlox::exporters::web {

std::string_view flame_svg_script();  // web/src/svg/flame_svg.ts and all it imports
std::string_view flame_style();       // web/src/flame.css
std::string_view page_script();       // web/src/page/main.ts and all it imports
std::string_view page_style();        // web/src/flame.css and web/src/page/page.css
// SHA-256 of their bytes in hexadecimal digits, for a policy that allows no other script.
std::string_view flame_svg_script_sha256();
std::string_view flame_style_sha256();
std::string_view page_script_sha256();
std::string_view page_style_sha256();

}  // namespace phlox::exporters::web
