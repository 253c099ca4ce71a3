# Bundles web/ with esbuild (one binary of Debian's, no node, no package) and compiles the result into a target as bytes:
# src/phlox/exporters/web_bundle.h says how to get at them.
find_program(ESBUILD esbuild REQUIRED)

function(phlox_embed_web target)
  set(web ${PROJECT_SOURCE_DIR}/web)
  set(out ${PROJECT_BINARY_DIR}/web)
  file(GLOB_RECURSE scripts CONFIGURE_DEPENDS ${web}/src/*.ts)
  add_custom_command(
    OUTPUT ${out}/flame_svg.js
    COMMAND ${ESBUILD} ${web}/src/svg/flame_svg.ts --bundle --minify --format=iife --target=es2019 --charset=utf8
            --log-level=warning --outfile=${out}/flame_svg.js
    DEPENDS ${scripts}
    COMMENT "Bundling flame_svg.js"
    VERBATIM)
  add_custom_command(
    OUTPUT ${out}/web_bundle.cpp
    COMMAND ${CMAKE_COMMAND} -D OUT=${out}/web_bundle.cpp -D "FILES=flame_svg_script=${out}/flame_svg.js,flame_style=${web}/src/flame.css"
            -P ${PROJECT_SOURCE_DIR}/cmake/embed.cmake
    DEPENDS ${out}/flame_svg.js ${web}/src/flame.css ${PROJECT_SOURCE_DIR}/cmake/embed.cmake
    COMMENT "Embedding the web bundle"
    VERBATIM)
  target_sources(${target} PRIVATE ${out}/web_bundle.cpp)
endfunction()
